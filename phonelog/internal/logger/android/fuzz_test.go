package android

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mplab/phonelog/internal/collector/lines"
	"mplab/phonelog/internal/logger/record"
)

// fuzz checks that any text yields either a one-line error or records that are
// valid in the schema.
func fuzz(f *testing.F, kind string, read func(text string) ([]record.State, error)) {
	texts, err := filepath.Glob("testdata/" + kind + "-*.txt")
	if err != nil || len(texts) == 0 {
		f.Fatal("no texts", err)
	}
	for _, path := range texts {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	checker := lines.New(0)
	f.Fuzz(func(t *testing.T, text string) {
		records, err := read(text)
		if err != nil {
			if s := err.Error(); s == "" || strings.ContainsRune(s, '\n') {
				t.Errorf("%q", s)
			}
			return
		}
		if len(records) == 0 {
			return
		}
		if bad := checker.Check([]byte(encode(t, records))); bad != nil {
			t.Errorf("%v\n%s", bad, encode(t, records))
		}
	})
}

func FuzzWiFi(f *testing.F) {
	fuzz(f, "wifi", func(text string) ([]record.State, error) {
		w, err := WiFi(text)
		w.Source = "fuzz"
		return []record.State{&w}, err
	})
}

func FuzzBattery(f *testing.F) {
	fuzz(f, "battery", func(text string) ([]record.State, error) {
		b, err := Battery(text)
		b.Source = "fuzz"
		return []record.State{&b}, err
	})
}

func FuzzCells(f *testing.F) {
	fuzz(f, "cell", func(text string) (records []record.State, err error) {
		cells, err := Cells(text, 0)
		for i := range cells {
			records = append(records, &cells[i])
		}
		return records, err
	})
}

func FuzzLocations(f *testing.F) {
	fuzz(f, "location", func(text string) (records []record.State, err error) {
		locations, err := Locations(text)
		for i := range locations {
			records = append(records, &locations[i])
		}
		return records, err
	})
}
