package mptrace

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"mplab/analysis/mptrace/tables"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden compares the JSON of real captures byte by byte. They were made
// with `mptrace capture` on a phone with two paths.
func TestGolden(t *testing.T) {
	for golden, files := range map[string][]string{
		"two-paths.json":       {"testdata/two-paths-wlan0.pcapng", "testdata/two-paths-rmnet0.pcapng"},
		"rmnet0-alone.json":    {"testdata/two-paths-rmnet0.pcapng"},
		"retransmissions.json": {"testdata/retransmissions-wlan0.pcapng"},
	} {
		var got bytes.Buffer
		if err := keep(t, tables.Small, files...).WriteJSON(&got, tables.Small); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", golden)
		if *update {
			if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s is not what comes out now:\n%s", path, got.Bytes())
		}
	}
}
