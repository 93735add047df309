package tables

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestAFileIsThereWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	name, taken := filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json")
	if err := os.WriteFile(name, []byte("what was there before"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(taken, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(name, []byte("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if b, _ := os.ReadFile(name); err != nil || info.Mode() != 0o644 || string(b) != "new" {
		t.Errorf("%v, %v, %q", err, info.Mode(), b)
	}
	if err := WriteFile(taken, []byte("new")); err == nil || !strings.HasPrefix(err.Error(), taken+": ") || !errors.Is(err, syscall.EEXIST) {
		t.Error(err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("%v", entries)
	}
	if err := WriteFile(filepath.Join(dir, "none", "c.json"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
