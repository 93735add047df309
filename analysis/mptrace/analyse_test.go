package mptrace

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"mplab/analysis/mptrace/internal/source"
	"mplab/analysis/mptrace/tables"
)

// keep analyses files and keeps the rows of the tables in the set.
func keep(t testing.TB, set tables.Set, files ...string) *tables.Result {
	t.Helper()
	r, err := Analyse(files, Options{Keep: set})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCutFile(t *testing.T) {
	whole, err := os.ReadFile("testdata/two-paths-wlan0.pcapng")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cut := filepath.Join(dir, "cut.pcapng")
	if err := os.WriteFile(cut, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	r := keep(t, tables.All, cut, filepath.Join(dir, "none.pcapng"))
	if len(r.Connections) != 1 || len(r.Files) != 2 {
		t.Fatalf("%+v", r)
	}
	if f := r.Files[0]; !f.Partial || f.Packets == 0 || f.Error == "" {
		t.Errorf("%+v", f)
	}
	if f := r.Files[1]; !f.Partial || f.Packets != 0 || f.Error != "no such file or directory" {
		t.Errorf("%+v", f)
	}
}

// TestOrderOfFiles: the order of the files does not matter.
func TestOrderOfFiles(t *testing.T) {
	a, b := "testdata/two-paths-wlan0.pcapng", "testdata/two-paths-rmnet0.pcapng"
	one, two := keep(t, tables.All, a, b), keep(t, tables.All, b, a)
	one.Files, two.Files = nil, nil
	if !reflect.DeepEqual(one, two) {
		t.Errorf("%+v\n%+v", one, two)
	}
}

// TestThreads: the number of threads does not change the files.
func TestThreads(t *testing.T) {
	var dirs [4]string
	for i := range dirs {
		dirs[i] = t.TempDir()
		_, err := Analyse([]string{"testdata/phone-v1.pcapng.gz", "testdata/two-paths-wlan0.pcapng"}, Options{Threads: i + 1, Directory: dirs[i]})
		if err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dirs[0])
	if err != nil || len(entries) != len(tables.Set(tables.All).Names())+1 {
		t.Fatalf("%v, %v", entries, err)
	}
	for _, e := range entries {
		one, err := os.ReadFile(filepath.Join(dirs[0], e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for i, dir := range dirs[1:] {
			several, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if string(one) != string(several) {
				t.Errorf("%s differs with %d threads", e.Name(), i+2)
			}
		}
	}
}

// TestNothingReadable: no table is written if no capture can be read.
func TestNothingReadable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tables")
	r, err := Analyse([]string{"analyse_test.go"}, Options{Directory: dir})
	if err != nil || !Unreadable(r.Files) {
		t.Errorf("%v, %+v", err, r)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("%v", entries)
	}
}

// FuzzAnalyse runs the whole analysis on arbitrary bytes with a capture header,
// and checks invariants of the result.
func FuzzAnalyse(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.pcapng")
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:min(len(b), 3000)])
	}
	name := filepath.Join(f.TempDir(), "capture")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		sameOnAllWays(t, uint64(len(b)), name)
		r, err := Analyse([]string{name}, Options{Keep: tables.All, Source: source.Options{Tunnels: true}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range r.Directions {
			d := &r.Directions[i]
			if d.UniqueBytes < 0 || d.Bytes < d.UniqueBytes || d.MissingBytes < 0 || d.ReinjectedBytes < 0 || d.DataSegments > d.Segments ||
				(d.Level == tables.LevelTCP && d.UniqueBytes+d.RetransmittedBytes != d.Bytes) {
				t.Errorf("%+v", d)
			}
		}
		for _, s := range r.Subflows {
			if s.DurationS < 0 || s.UniqueUp > s.PayloadUp || s.UniqueDown > s.PayloadDown {
				t.Errorf("%+v", s)
			}
		}
		for _, c := range r.Connections {
			if c.BytesUp < 0 || c.BytesDown < 0 || c.ReinjectedUp < 0 || c.ReinjectedDn < 0 || c.DurationS < 0 || c.Subflows > c.SubflowsAsked {
				t.Errorf("%+v", c)
			}
		}
	})
}

// BenchmarkAnalyse analyses a gzip capture of a phone.
func BenchmarkAnalyse(b *testing.B) {
	var packets int64
	for b.Loop() {
		for _, f := range keep(b, tables.TableConnections, "testdata/phone-v1.pcapng.gz").Files {
			packets += f.Packets
		}
	}
	b.ReportMetric(float64(packets)/b.Elapsed().Seconds(), "packets/s")
}
