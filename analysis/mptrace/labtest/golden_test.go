package labtest_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"mplab/analysis/mptrace"
	"mplab/analysis/mptrace/tables"
)

var update = flag.Bool("update", false, "record the captures of testdata/kernel anew")

const goldenDir = "../testdata/kernel"

// TestRecord makes the captures of TestGolden.
func TestRecord(t *testing.T) {
	if !*update {
		t.Skip("-update is not given")
	}
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			got := play(t, s, dir)
			for view, names := range got.Views {
				for i, name := range names {
					store(t, filepath.Join(dir, name), filepath.Join(goldenDir, name+".gz"))
					got.Views[view][i] += ".gz"
				}
			}
			b, err := json.MarshalIndent(got, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(goldenDir, s.name+".json"), append(b, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// store compresses a file.
func store(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	_, _ = z.Write(b)
	_ = z.Close()
	if err := os.WriteFile(to, packed.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestGolden compares the analysis of stored captures with the applications'
// counts at recording.
func TestGolden(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(goldenDir, "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no truth in %s: %v", goldenDir, err)
	}
	for _, path := range paths {
		var want truth
		if err := want.read(path); err != nil {
			t.Fatal(err)
		}
		for view, names := range want.Views {
			t.Run(want.Name+"/"+view, func(t *testing.T) {
				t.Parallel()
				want.check(t, view, false, analyse(t, captures(goldenDir, names)))
			})
		}
	}
}

// TestScenarios plays all scenarios live, with the kernel of this machine.
func TestScenarios(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			want := play(t, s, dir)
			for view, names := range want.Views {
				want.check(t, view, true, analyse(t, captures(dir, names)))
			}
		})
	}
}

// analyse converts captures into tables.
func analyse(t *testing.T, files []string) rows {
	t.Helper()
	const set = tables.TableConnections | tables.TableSubflows | tables.TableDirections | tables.TableEvents
	result, err := mptrace.Analyse(files, mptrace.Options{Keep: set})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range result.Files {
		if f.Partial {
			t.Fatalf("%s: %s", f.Name, f.Error)
		}
	}
	var out bytes.Buffer
	if err := result.WriteJSON(&out, set); err != nil {
		t.Fatal(err)
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	all := rows{}
	for name, raw := range got {
		var table []columns
		if json.Unmarshal(raw, &table) == nil {
			all[name] = table
		}
	}
	return all
}
