package mptrace

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"mplab/analysis/mptrace/capfile"
	"mplab/analysis/mptrace/tables"
)

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
	r := Analyse([]string{cut, filepath.Join(dir, "none.pcapng")})
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

// TestOrderOfFiles: the order in which files are named does not matter.
func TestOrderOfFiles(t *testing.T) {
	a, b := "testdata/two-paths-wlan0.pcapng", "testdata/two-paths-rmnet0.pcapng"
	one, two := Analyse([]string{a, b}), Analyse([]string{b, a})
	if !reflect.DeepEqual(one.Connections, two.Connections) || !reflect.DeepEqual(one.Subflows, two.Subflows) {
		t.Errorf("%+v\n%+v", one.Connections, two.Connections)
	}
}

// FuzzEngine gives the whole engine bytes that call themselves a capture, and
// checks what must hold of any result.
func FuzzEngine(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.pcapng")
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:min(len(b), 3000)])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := capfile.New("x", bytes.NewReader(b))
		if err != nil {
			return
		}
		defer file.Close()
		var row tables.File
		r := run([]*capfile.File{file}, func(int) *tables.File { return &row })
		for _, s := range r.Subflows {
			if s.UniqueUp+s.RetransmittedBytesUp != s.PayloadUp || s.UniqueDown+s.RetransmittedBytesDown != s.PayloadDown ||
				s.DurationS < 0 || s.SegmentsUp+s.SegmentsDown == 0 {
				t.Errorf("%+v", s)
			}
		}
		for _, c := range r.Connections {
			if c.BytesUp < 0 || c.BytesDown < 0 || c.ReinjectedUp < 0 || c.ReinjectedDown < 0 || c.DurationS < 0 {
				t.Errorf("%+v", c)
			}
		}
		if err := r.WriteSummary(io.Discard); err != nil {
			t.Error(err)
		}
	})
}

// BenchmarkAnalyse is dominated by decoding and tracking.
func BenchmarkAnalyse(b *testing.B) {
	var packets int64
	for b.Loop() {
		for _, f := range Analyse([]string{"testdata/two-paths-wlan0.pcapng", "testdata/two-paths-rmnet0.pcapng"}).Files {
			packets += f.Packets
		}
	}
	b.ReportMetric(float64(packets)/b.Elapsed().Seconds(), "packets/s")
}
