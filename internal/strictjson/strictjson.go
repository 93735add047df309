package strictjson

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Address is an IP address with a port; the zero Address is "".
type Address struct{ netip.AddrPort }

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Address) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	addr, err := netip.ParseAddrPort(string(text))
	if err != nil {
		return fmt.Errorf("%q is not ADDRESS:PORT with a numeric address", text)
	}
	a.AddrPort = netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
	return nil
}

// Load reads a file with one JSON object into target, a pointer to a structure.
func Load(path string, target any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := Decode(data, target); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Decode reads one JSON object into target, a pointer to a structure.
func Decode(data []byte, target any) error {
	if err := checkKeys("", data, reflect.TypeOf(target).Elem()); err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(target); err != nil {
		return explain(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the object")
	}
	return nil
}

// explain converts an error of package json into one that names the key.
func explain(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Errorf("%s: a %s was found where %s is needed", index.ReplaceAllString(kind.Field, ""), kind.Value, article(kind.Type))
	}
	return err
}

// index matches an index in a list; whether package json reports it depends on its version.
var index = regexp.MustCompile(`\.\d+`)

func article(t reflect.Type) string {
	if isText(t) {
		return "a string"
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int64, reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	}
	return "an object"
}

// checkKeys checks the keys of an object against its structure. Values of a wrong kind are left to the decoder.
func checkKeys(path string, data []byte, t reflect.Type) error {
	object, twice, err := members(data)
	if err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			line := 1 + bytes.Count(data[:min(syntax.Offset, int64(len(data)))], []byte("\n"))
			return fmt.Errorf("line %d: %w", line, err)
		}
		if path == "" {
			return errors.New("not a JSON object")
		}
		return nil
	}
	if twice != "" {
		return fmt.Errorf("%s%s: given twice; remove one", path, twice)
	}
	fields := make(map[string]reflect.Type)
	for i := range t.NumField() {
		if key := t.Field(i).Tag.Get("json"); key != "-" {
			fields[key] = t.Field(i).Type
			if of := t.Field(i).Type; of.Kind() == reflect.Pointer && nested(of.Elem()) {
				fields[key] = of.Elem()
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		field, known := fields[key]
		if !known {
			return fmt.Errorf("%s%s: unknown key; known here: %s", path, key, strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		}
		if nested(field) {
			if err := checkKeys(path+key+".", object[key], field); err != nil {
				return err
			}
			continue
		}
		if field.Kind() == reflect.Slice && nested(field.Elem()) {
			if err := checkList(path+key, object[key], field.Elem()); err != nil {
				return err
			}
			continue
		}
		if err := checkText(object[key], field); err != nil {
			return fmt.Errorf("%s%s: %w", path, key, err)
		}
	}
	return nil
}

// members returns the values of an object by key, and the first duplicate key, or "". Package json would keep the last
// value of a duplicate key.
func members(data []byte) (object map[string]json.RawMessage, twice string, err error) {
	if err := json.Unmarshal(data, &object); err != nil || object == nil {
		return object, "", err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	if _, err := decoder.Token(); err != nil {
		return nil, "", err
	}
	seen := make(map[string]bool, len(object))
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, "", err
		}
		key, _ := token.(string)
		if seen[key] {
			return object, key, nil
		}
		seen[key] = true
		if err := decoder.Decode(new(json.RawMessage)); err != nil {
			return nil, "", err
		}
	}
	return object, "", nil
}

// nested reports whether the value of a key is an object with its own keys.
func nested(t reflect.Type) bool { return t.Kind() == reflect.Struct && !isText(t) }

// isText reports whether a type is decoded from a string by its own method.
func isText(t reflect.Type) bool { return reflect.PointerTo(t).Implements(textUnmarshaler) }

var textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()

// checkList is checkKeys for each object of a list.
func checkList(path string, data []byte, t reflect.Type) error {
	var list []json.RawMessage
	if json.Unmarshal(data, &list) != nil {
		return nil // left to the decoder
	}
	for i, item := range list {
		if err := checkKeys(fmt.Sprintf("%s[%d].", path, i), item, t); err != nil {
			return err
		}
	}
	return nil
}

// checkText decodes a string value with its own method, so that its error can name the key.
func checkText(data []byte, t reflect.Type) error {
	var text *string
	if !isText(t) || json.Unmarshal(data, &text) != nil || text == nil {
		return nil // left to the decoder
	}
	return reflect.New(t).Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(*text))
}
