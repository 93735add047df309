package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func open(t testing.TB, dir string) (*Store, Report) {
	t.Helper()
	s, report, err := Open(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	return s, report
}

func put(t testing.TB, s *Store, device, id, content string) bool {
	t.Helper()
	created, err := s.Put(device, id, []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// only returns the single file of a device.
func only(t testing.TB, dir, device string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, device, "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	return files[0]
}

func TestStoredOnce(t *testing.T) {
	dir := t.TempDir()
	s, _ := open(t, dir)
	if !put(t, s, "a", "1", "{}\n") || put(t, s, "a", "1", "{}\n") || !put(t, s, "b", "1", "{\"of\":\"b\"}\n") || !put(t, s, "a", "2", "{}\n") {
		t.Error("new, again, of another device, another id")
	}
	if _, err := s.Put("a", "1", []byte("{\"x\":1}\n")); !errors.Is(err, ErrConflict) {
		t.Errorf("another content: %v", err)
	}
	if _, err := s.Put("a", "3", nil); err == nil {
		t.Error("an empty batch")
	}
	if _, _, err := Open(dir, 1); !errors.Is(err, ErrLocked) {
		t.Errorf("%v", err)
	}
	must(t, s.Close())
	if _, err := s.Put("a", "4", []byte("{}\n")); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	s, report := open(t, dir)
	defer s.Close()
	if report.Devices != 2 || report.Batches != 3 || len(report.Torn)+len(report.Damaged) != 0 {
		t.Errorf("%+v", report)
	}
	if put(t, s, "a", "1", "{}\n") {
		t.Error("stored again after a new start")
	}
	if _, err := s.Put("a", "1", []byte("{\"x\":1}\n")); !errors.Is(err, ErrConflict) {
		t.Errorf("another content, after a new start: %v", err)
	}
	data, err := os.ReadFile(only(t, dir, "a"))
	must(t, err)
	if n := bytes.Count(data, []byte(prefix)); n != 2 {
		t.Errorf("%d batches:\n%s", n, data)
	}
	if info, err := os.Stat(only(t, dir, "a")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestManyAtOnce sends many concurrent batches, some of them from several callers: each
// is stored once, and each caller with a success finds the batch on the disk.
func TestManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	s, _ := open(t, dir)
	const devices, batches, repeats = 3, 40, 3
	var created sync.Map
	var all sync.WaitGroup
	for d := range devices {
		for b := range batches {
			for range repeats {
				all.Go(func() {
					device, id := fmt.Sprint("d", d), fmt.Sprint("b", b)
					new, err := s.Put(device, id, []byte(fmt.Sprintf("{\"b\":%d}\n", b)))
					if err != nil {
						t.Error(err)
					}
					if new {
						if _, twice := created.LoadOrStore(device+id, true); twice {
							t.Errorf("%s of %s is new twice", id, device)
						}
					}
				})
			}
		}
	}
	all.Wait()
	must(t, s.Close())
	s, report := open(t, dir)
	defer s.Close()
	if report.Batches != devices*batches {
		t.Errorf("%+v", report)
	}
}

func TestTornEnd(t *testing.T) {
	whole := func(t *testing.T) (dir, path string, size int64) {
		dir = t.TempDir()
		s, _ := open(t, dir)
		put(t, s, "a", "1", "{\"n\":1}\n")
		put(t, s, "a", "2", "{\"n\":2}\n{\"n\":3}\n")
		must(t, s.Close())
		path = only(t, dir, "a")
		info, err := os.Stat(path)
		must(t, err)
		return dir, path, info.Size()
	}
	next, err := frame("3", []byte("{\"n\":4}\n"), [32]byte{}, 1)
	must(t, err)
	for name, end := range map[string][]byte{
		"a part of a header": next[:20],
		"a header alone":     next[:bytes.IndexByte(next, '\n')+1],
		"a part of lines":    next[:len(next)-3],
		"a wrong hash":       next,
		"zeroes":             make([]byte, 5000),
		"a long line":        bytes.Repeat([]byte("x"), 200000),
	} {
		t.Run(name, func(t *testing.T) {
			dir, path, size := whole(t)
			data, err := os.ReadFile(path)
			must(t, err)
			must(t, os.WriteFile(path, append(data, end...), 0o600))
			s, report := open(t, dir)
			defer s.Close()
			if report.Batches != 2 || len(report.Torn) != 1 || len(report.Damaged) != 0 {
				t.Errorf("%+v", report)
			}
			if info, err := os.Stat(path); err != nil || info.Size() != size {
				t.Errorf("%v, %v", info, err)
			}
			aside, err := os.ReadFile(fmt.Sprintf("%s.torn-%d", path, size))
			if err != nil || !bytes.Equal(aside, end) {
				t.Errorf("%q, %v", aside, err)
			}
			if !put(t, s, "a", "3", "{\"n\":4}\n") {
				t.Error("what was torn is there")
			}
		})
	}
	t.Run("in the middle", func(t *testing.T) {
		dir, path, size := whole(t)
		data, err := os.ReadFile(path)
		must(t, err)
		must(t, os.WriteFile(path, bytes.Replace(data, []byte("{\"n\":1}"), []byte("{\"n\":9}"), 1), 0o600))
		s, report := open(t, dir)
		defer s.Close()
		if report.Batches != 1 || len(report.Torn) != 0 || len(report.Damaged) != 1 {
			t.Errorf("%+v", report)
		}
		if info, err := os.Stat(path); err != nil || info.Size() != size {
			t.Errorf("something was cut off: %v, %v", info, err)
		}
		if put(t, s, "a", "2", "{\"n\":2}\n{\"n\":3}\n") || !put(t, s, "a", "1", "{\"n\":1}\n") {
			t.Error("what can be read is there, what cannot is not")
		}
	})
}

// TestLinesThatLookLikeHeaders checks that a line can contain text that looks like a
// batch header.
func TestLinesThatLookLikeHeaders(t *testing.T) {
	dir := t.TempDir()
	s, _ := open(t, dir)
	false1, err := frame("false", []byte("{}\n"), [32]byte{}, 1)
	must(t, err)
	put(t, s, "a", "1", string(false1))
	put(t, s, "a", "2", "{}\n")
	must(t, s.Close())
	s, report := open(t, dir)
	defer s.Close()
	if report.Batches != 2 || len(report.Damaged) != 0 || !put(t, s, "a", "false", "{}\n") {
		t.Errorf("%+v", report)
	}
}

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("a small file system cannot be mounted here: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	for name, minFree := range map[string]int64{"to the last byte": 1, "with a reserve": 300 << 10} {
		t.Run(name, func(t *testing.T) {
			store := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			s, _, err := Open(store, minFree)
			must(t, err)
			content := []byte("{\"x\":\"" + strings.Repeat("y", 50000) + "\"}\n")
			acknowledged := 0
			for i := range 100 {
				if _, err = s.Put("a", fmt.Sprint(i), content); err != nil {
					break
				}
				acknowledged++
			}
			if !errors.Is(err, ErrFull) || acknowledged == 0 {
				t.Errorf("%d, then %v", acknowledged, err)
			}
			var disk unix.Statfs_t
			must(t, unix.Statfs(dir, &disk))
			if free := int64(disk.Bavail) * disk.Bsize; free < minFree && minFree > 1 {
				t.Errorf("%d bytes are free", free)
			}
			must(t, s.Close())
			s, report, err := Open(store, 1)
			must(t, err)
			if report.Batches != acknowledged || len(report.Torn) != 0 {
				t.Errorf("%d acknowledged, found %+v", acknowledged, report)
			}
			must(t, s.Close())
			must(t, os.RemoveAll(store))
		})
	}
}

// TestSegments checks that a file that cannot be restored is abandoned for the day.
func TestSegments(t *testing.T) {
	dir := t.TempDir()
	s, _ := open(t, dir)
	put(t, s, "a", "1", "{}\n")
	day := strings.TrimSuffix(filepath.Base(only(t, dir, "a")), ".jsonl")
	s.device("a").segment[day]++
	put(t, s, "a", "2", "{}\n")
	must(t, s.Close())
	if _, err := os.Stat(filepath.Join(dir, "a", day+".1.jsonl")); err != nil && day == time.Now().UTC().Format(time.DateOnly) {
		t.Error(err)
	}
	s, report := open(t, dir)
	defer s.Close()
	if report.Batches != 2 {
		t.Errorf("%+v", report)
	}
	put(t, s, "a", "3", "{}\n")
	if s.device("a").segment[day] != 1 {
		t.Error("the number of the file is forgotten")
	}
}

func TestIDs(t *testing.T) {
	for id, good := range map[string]bool{"00000001-0f": true, "a": true, "": false, ".": false, "..": false, "a/b": false, "a\nb": false, "é": false,
		strings.Repeat("a", 128): true, strings.Repeat("a", 129): false} {
		if err := CheckID(id); (err == nil) != good {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// FuzzWalk: in any file, the complete batches are found, and reading it again
// yields the same.
func FuzzWalk(f *testing.F) {
	good, err := frame("good", []byte("{}\n"), [32]byte{0x9b}, 1)
	must(f, err)
	f.Add([]byte(""), good)
	f.Add([]byte("x\n"), []byte("{\"kind\":\"batch\",\n"))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		dir := t.TempDir()
		s, _ := open(t, dir)
		put(t, s, "a", "1", "{\"n\":1}\n")
		must(t, s.Close())
		path := only(t, dir, "a")
		data, err := os.ReadFile(path)
		must(t, err)
		if len(before) > 0 {
			before = append(before, '\n') // a batch starts after a line end
		}
		must(t, os.WriteFile(path, append(append(append([]byte{}, before...), data...), after...), 0o600))
		s, report := open(t, dir)
		if report.Batches < 1 || put(t, s, "a", "1", "{\"n\":1}\n") {
			t.Errorf("%+v", report)
		}
		must(t, s.Close())
		s, again := open(t, dir)
		defer s.Close()
		if again.Batches != report.Batches || len(again.Torn) != 0 {
			t.Errorf("first %+v, then %+v", report, again)
		}
	})
}

func BenchmarkPut(b *testing.B) {
	content := []byte(strings.Repeat("{\"kind\":\"stop\",\"reason\":\"a benchmark\"}\n", 200))
	for _, clients := range []int{1, 16} {
		b.Run(fmt.Sprintf("%d at once", clients), func(b *testing.B) {
			s, _ := open(b, b.TempDir())
			defer s.Close()
			b.SetParallelism(clients)
			b.SetBytes(int64(len(content)))
			var n sync.Mutex
			next := 0
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					n.Lock()
					next++
					id := fmt.Sprint(next)
					n.Unlock()
					put(b, s, "a", id, string(content))
				}
			})
		})
	}
}
