package store

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var roomy = Limits{Bytes: 1 << 20, Age: time.Hour, Total: 1 << 30}

func open(t *testing.T, dir string, limits Limits) *Store {
	t.Helper()
	s, err := Open(dir, limits)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		if e.Name() != "lock" && e.Name() != "ledger.json" {
			all = append(all, e.Name())
		}
	}
	return all
}

func content(t *testing.T, s *Store, b Batch) (id, text string) {
	t.Helper()
	id, data, err := s.Load(b, "phone")
	must(t, err)
	r, err := gzip.NewReader(bytes.NewReader(data))
	must(t, err)
	plain, err := io.ReadAll(r)
	must(t, err)
	return id, string(plain)
}

func TestLifeOfAFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	s := open(t, dir, roomy)
	must(t, s.Rotate()) // nothing exists yet
	if s.Due() || len(s.Waiting()) != 0 {
		t.Error("an empty store has a file")
	}
	must(t, s.Append([]byte("{\"a\":1}\n")))
	must(t, s.Append([]byte("{\"a\":2}\n")))
	if got := names(t, dir); !slices.Equal(got, []string{"00000001.jsonl"}) || len(s.Waiting()) != 0 {
		t.Errorf("%v", got)
	}
	must(t, s.Rotate())
	must(t, s.Append([]byte("{\"a\":3}\n")))
	must(t, s.Rotate())
	waiting := s.Waiting()
	if got := names(t, dir); !slices.Equal(got, []string{"00000001.jsonl.gz", "00000002.jsonl.gz"}) || len(waiting) != 2 {
		t.Errorf("%v, %v", got, waiting)
	}
	id, text := content(t, s, waiting[0])
	if text != "{\"a\":1}\n{\"a\":2}\n" || !strings.HasPrefix(id, "00000001-") || len(id) != 8+1+32 {
		t.Errorf("%q, %q", id, text)
	}
	again, _ := content(t, s, waiting[0])
	other, _, _ := s.Load(waiting[0], "another-phone")
	if again != id || other == id {
		t.Errorf("ids: %s, %s, of another device %s", id, again, other)
	}
	must(t, s.Sent(waiting[0]))
	must(t, s.Refused(waiting[1]))
	if got := names(t, dir); !slices.Equal(got, []string{"00000001.sent.jsonl.gz", "00000002.refused.jsonl.gz"}) || len(s.Waiting()) != 0 {
		t.Errorf("%v", got)
	}
	if st := s.Status(); st.Sent != 1 || st.Refused != 1 || st.Waiting != 0 || st.Bytes == 0 {
		t.Errorf("%+v", st)
	}
	must(t, s.Close())
	s = open(t, dir, roomy)
	defer s.Close()
	if st := s.Status(); st.Sent != 1 || st.Refused != 0 || st.Waiting != 1 {
		t.Errorf("after a new start, which tries what was refused again: %+v", st)
	}
	if again, _ := content(t, s, s.Waiting()[0]); again == id || !strings.HasPrefix(again, "00000002-") {
		t.Errorf("%s", again)
	}
	must(t, s.Append([]byte("{}\n")))
	if got := names(t, dir); !slices.Contains(got, "00000003.jsonl") {
		t.Errorf("%v", got)
	}
}

func TestOneLoggerAtATime(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, roomy)
	if _, err := Open(dir, roomy); !errors.Is(err, ErrLocked) {
		t.Errorf("%v", err)
	}
	must(t, s.Close())
	must(t, open(t, dir, roomy).Close())
}

// TestWhatIsLeft has state that a killed logger, a full disk or a power failure can
// leave.
func TestWhatIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  []string // names, and the content of waiting files
		lines []string
	}{
		"killed":              {map[string]string{"00000007.jsonl": "{\"a\":1}\n{\"a\":"}, []string{"00000007.jsonl.gz"}, []string{"{\"a\":1}\n"}},
		"killed at once":      {map[string]string{"00000007.jsonl": "{\"a\":"}, nil, nil},
		"nothing written":     {map[string]string{"00000007.jsonl": ""}, nil, nil},
		"zeroes at its end":   {map[string]string{"00000007.jsonl": "{}\n\x00\x00\n\x00"}, []string{"00000007.jsonl.gz"}, []string{"{}\n"}},
		"garbage in it":       {map[string]string{"00000007.jsonl": "{}\nnonsense\n[]\n{\"b\":2}\n"}, []string{"00000007.jsonl.gz"}, []string{"{}\n{\"b\":2}\n"}},
		"while it was packed": {map[string]string{"00000007.jsonl": "{}\n", "00000007.jsonl.gz.tmp": "half"}, []string{"00000007.jsonl.gz"}, []string{"{}\n"}},
		"foreign files":       {map[string]string{"notes.txt": "x", "7.jsonl": "x"}, []string{"7.jsonl", "notes.txt"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range c.files {
				must(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
			}
			s := open(t, dir, roomy)
			defer s.Close()
			if got := names(t, dir); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
			for i, b := range s.Waiting() {
				if _, text := content(t, s, b); text != c.lines[i] {
					t.Errorf("%q", text)
				}
			}
			if len(s.Waiting()) != len(c.lines) {
				t.Errorf("%d wait", len(s.Waiting()))
			}
		})
	}
	t.Run("packed, and not yet removed", func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, dir, roomy)
		must(t, s.Append([]byte("{\"a\":1}\n")))
		must(t, s.Close())
		must(t, os.WriteFile(filepath.Join(dir, "00000001.jsonl"), []byte("{\"a\":1}\n"), 0o600))
		s = open(t, dir, roomy)
		defer s.Close()
		if got := names(t, dir); !slices.Equal(got, []string{"00000001.jsonl.gz"}) {
			t.Errorf("%v", got)
		}
	})
	t.Run("a ledger that is nonsense", func(t *testing.T) {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "ledger.json"), []byte("\x00"), 0o600))
		must(t, os.WriteFile(filepath.Join(dir, "00000041.jsonl"), []byte("{}\n"), 0o600))
		s := open(t, dir, roomy)
		defer s.Close()
		must(t, s.Append([]byte("{}\n")))
		if got := names(t, dir); !slices.Contains(got, "00000042.jsonl") {
			t.Errorf("%v", got)
		}
	})
}

func TestLimitsOfTheFileThatGrows(t *testing.T) {
	line := []byte("{\"a\":\"" + strings.Repeat("x", 100) + "\"}\n")
	s := open(t, t.TempDir(), Limits{Bytes: 2 * int64(len(line)), Age: time.Hour, Total: 1 << 20})
	defer s.Close()
	must(t, s.Append(line))
	if s.Due() {
		t.Error("due too early")
	}
	must(t, s.Append(line))
	if !s.Due() {
		t.Error("not due")
	}
	must(t, s.Rotate())
	if s.Due() {
		t.Error("nothing is due")
	}
	old := open(t, t.TempDir(), Limits{Bytes: 1 << 20, Age: time.Nanosecond, Total: 1 << 20})
	defer old.Close()
	must(t, old.Append(line))
	if !old.Due() {
		t.Error("it is old")
	}
}

// TestBound checks that the total size is bounded: uploaded files are deleted first,
// oldest first. Others are deleted last and counted, and the sequence continues.
func TestBound(t *testing.T) {
	dir := t.TempDir()
	random := func(i int) []byte { // incompressible
		var b strings.Builder
		for k := range 400 {
			fmt.Fprintf(&b, "%x", (i*7919+k*104729)*2654435761&0xffffffff)
		}
		return []byte("{\"a\":\"" + b.String() + "\"}\n")
	}
	fill := func(s *Store, from, to int) {
		for i := from; i < to; i++ {
			must(t, s.Append(random(i)))
			must(t, s.Rotate())
		}
	}
	s := open(t, dir, roomy)
	fill(s, 0, 8)
	size := s.Status().Bytes / 8
	must(t, s.Close())
	limits := Limits{Bytes: 1 << 20, Age: time.Hour, Total: 10*size + size/2}
	s = open(t, dir, limits)
	for _, i := range []int{2, 3, 5} {
		must(t, s.Sent(s.Waiting()[slices.IndexFunc(s.Waiting(), func(b Batch) bool { return b.file.sequence == uint64(i) })]))
	}
	stale := s.Waiting()[0]
	fill(s, 8, 12)
	st := s.Status()
	if st.Bytes > limits.Total || st.Dropped.Batches != 0 || st.Waiting != 9 || st.Sent >= 3 || st.Sent < 1 {
		t.Errorf("what was uploaded goes first: %+v", st)
	}
	if got := names(t, dir); slices.Contains(got, "00000002.sent.jsonl.gz") || !slices.Contains(got, "00000005.sent.jsonl.gz") {
		t.Errorf("oldest first: %v", got)
	}
	fill(s, 12, 20)
	st = s.Status()
	if st.Bytes > limits.Total || st.Sent != 0 || st.Dropped.Batches == 0 || uint64(st.Waiting)+st.Dropped.Batches != 17 || st.Dropped.Bytes < uint64(size/2) {
		t.Errorf("%+v", st)
	}
	if _, _, err := s.Load(stale, "phone"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	must(t, s.Sent(stale)) // dropped while it was being sent
	must(t, s.Close())
	s = open(t, dir, limits)
	defer s.Close()
	if after := s.Status(); after.Dropped != st.Dropped {
		t.Errorf("the counts are lost: %+v", after.Dropped)
	}
	must(t, s.Append(random(1)))
	if got := names(t, dir); !slices.Contains(got, "00000021.jsonl") {
		t.Errorf("%v", got)
	}
}

// FuzzWhole checks that complete lines survive, whatever was written after them.
func FuzzWhole(f *testing.F) {
	f.Add([]byte("{\"a\":1}\n{\"a"))
	f.Add([]byte("\x00\x00\n{}\n"))
	f.Fuzz(func(t *testing.T, tail []byte) {
		const good = "{\"kind\":\"stop\"}\n"
		kept := whole(append([]byte(good), tail...))
		if !bytes.HasPrefix(kept, []byte(good)) || kept[len(kept)-1] != '\n' || len(kept) > len(good)+len(tail) || !bytes.Equal(whole(kept), kept) {
			t.Errorf("%q", kept)
		}
	})
}

// TestFullDisk: lines are lost, but none is truncated, and writing continues
// when there is room.
func TestFullDisk(t *testing.T) {
	dir := smallDisk(t)
	s := open(t, filepath.Join(dir, "store"), roomy)
	defer s.Close()
	line := []byte("{\"a\":\"" + strings.Repeat("x", 4000) + "\"}\n")
	written := 0
	for range 1000 {
		if err := s.Append(line); err != nil {
			break
		}
		written++
	}
	if written == 0 || written == 1000 {
		t.Fatalf("%d lines were written", written)
	}
	data, err := os.ReadFile(filepath.Join(dir, "store", "00000001.jsonl"))
	must(t, err)
	if len(data) != written*len(line) {
		t.Errorf("%d bytes for %d lines", len(data), written)
	}
	must(t, os.Remove(filepath.Join(dir, "ballast")))
	must(t, s.Append(line))
	must(t, s.Rotate())
	if _, text := content(t, s, s.Waiting()[0]); len(text) != (written+1)*len(line) {
		t.Errorf("%d bytes for %d lines", len(text), written+1)
	}
}
