package spool

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestManyFiles: more files than the process may open are written concurrently.
// Each is complete, and little of it is in memory.
func TestManyFiles(t *testing.T) {
	limit(t, 64)
	path := filepath.Join(t.TempDir(), "new", "dir")
	d, err := New(path)
	if err != nil {
		t.Fatal(err)
	}
	const files, lines = 500, 300
	line := strings.Repeat("x", 400)
	all := make([]*File, files)
	for i := range all {
		all[i] = d.File(fmt.Sprint(i))
	}
	for k := range lines {
		for i, f := range all {
			fmt.Fprintf(f, "%d %d %s\n", i, k, line)
		}
		if d.bytes > allLimit {
			t.Fatalf("%d bytes wait", d.bytes)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range all {
		var want bytes.Buffer
		for k := range lines {
			fmt.Fprintf(&want, "%d %d %s\n", i, k, line)
		}
		got, err := os.ReadFile(filepath.Join(path, fmt.Sprint(i)))
		if err != nil || !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("file %d: %v, %d bytes of %d", i, err, len(got), want.Len())
		}
	}
}

// limit sets the maximum number of open files of the process.
func limit(t *testing.T, files uint64) {
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Skip(err)
	}
	few := old
	few.Cur = files
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old) })
}

func TestFileOfAFormerRunIsReplaced(t *testing.T) {
	path := t.TempDir()
	for _, name := range []string{"written", "empty"} {
		if err := os.WriteFile(filepath.Join(path, name), []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, _ := New(path)
	written, empty := d.File("written"), d.File("empty")
	fmt.Fprint(written, "a")
	written.Close()
	fmt.Fprint(written, "b")
	written.Close()
	written.Close()
	empty.Close()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"written": "ab", "empty": ""} {
		if got, err := os.ReadFile(filepath.Join(path, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestErrorNamesTheFile(t *testing.T) {
	path := t.TempDir()
	d, _ := New(path)
	f := d.File("no/such/place")
	fmt.Fprint(f, "a")
	f.Close()
	fmt.Fprint(f, "b") // lost
	if err := d.Close(); err == nil || !strings.Contains(err.Error(), "no/such/place") || d.Err() != err {
		t.Errorf("%v", err)
	}
	if _, err := New(filepath.Join(path, "x\x00")); err == nil {
		t.Error("a directory that cannot be")
	}
}
