package config

import (
	"os"
	"reflect"
	"regexp"
	"testing"

	"mplab/internal/strictjson"
)

// TestManual checks that the manual documents every key of logger and collector.
func TestManual(t *testing.T) {
	for file, of := range map[string]reflect.Type{"../../../docs/logger.md": reflect.TypeFor[Logger](), "../../../docs/collector.md": reflect.TypeFor[Collector]()} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys(of) {
			if !regexp.MustCompile("[`.\"]" + regexp.QuoteMeta(key) + "[`\"]").Match(text) {
				t.Errorf("%s does not name %s", file, key)
			}
		}
	}
}

// keys returns the keys of a structure, including nested ones.
func keys(of reflect.Type) (all []string) {
	for i := range of.NumField() {
		field := of.Field(i)
		key := field.Tag.Get("json")
		if key == "-" {
			continue
		}
		inner := field.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[strictjson.Address]() {
			all = append(all, keys(inner)...)
			continue
		}
		all = append(all, key)
	}
	return all
}
