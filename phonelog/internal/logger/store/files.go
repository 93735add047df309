package store

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// recover reads the directory.
func (s *Store) recover() error {
	data, err := os.ReadFile(s.path("ledger.json"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && json.Unmarshal(data, &s.ledger) != nil {
		s.ledger = ledger{} // the sequence is derived from the files; the counts are lost
	}
	s.ledger.Next = max(s.ledger.Next, 1)
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) == ".tmp" {
			_ = os.Remove(s.path(entry.Name()))
			continue
		}
		m := form.FindStringSubmatch(entry.Name())
		info, err := entry.Info()
		if m == nil || err != nil || !info.Mode().IsRegular() {
			continue
		}
		sequence, err := strconv.ParseUint(m[1], 10, 63)
		if err != nil {
			continue
		}
		f := file{sequence: sequence, state: map[string]int{"": waiting, ".sent": sent, ".refused": refused}[m[2]], packed: m[3] != "", size: info.Size()}
		s.ledger.Next = max(s.ledger.Next, sequence+1)
		s.files = append(s.files, f)
	}
	slices.SortFunc(s.files, func(a, b file) int {
		return cmp.Or(cmp.Compare(a.sequence, b.sequence), cmp.Compare(b.state, a.state), flag(b.packed)-flag(a.packed))
	})
	// Killed between writing the compressed file and removing the original.
	kept := s.files[:0]
	for _, f := range s.files {
		if n := len(kept); n > 0 && kept[n-1].sequence == f.sequence {
			_ = os.Remove(s.path(f.name()))
			continue
		}
		kept = append(kept, f)
	}
	s.files = kept
	for i := 0; i < len(s.files); i++ {
		f := &s.files[i]
		if f.state == refused { // the collector may have been updated
			again := *f
			again.state = waiting
			if os.Rename(s.path(f.name()), s.path(again.name())) == nil {
				*f = again
			}
		}
		if f.packed {
			continue
		}
		packed, err := s.pack(*f)
		if err != nil {
			continue // disk full: keep it uncompressed
		}
		if packed.size == 0 {
			s.files = slices.Delete(s.files, i, i+1)
			i--
			continue
		}
		*f = packed
	}
	return nil
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// pack compresses a file and removes it. It drops incomplete lines; size 0
// means that no line is left.
func (s *Store) pack(f file) (file, error) {
	data, err := os.ReadFile(s.path(f.name()))
	if err != nil {
		return f, err
	}
	packed := f
	packed.packed, packed.size = true, 0
	if data = whole(data); len(data) > 0 {
		var compressed bytes.Buffer
		w := gzip.NewWriter(&compressed)
		if _, err := w.Write(data); err != nil {
			return f, err
		}
		if err := w.Close(); err != nil {
			return f, err
		}
		if err := s.put(packed.name(), compressed.Bytes()); err != nil {
			return f, err
		}
		packed.size = int64(compressed.Len())
	}
	return packed, os.Remove(s.path(f.name()))
}

// whole returns the lines that are JSON objects. The last line can be
// truncated, and after a power failure any line can be garbage.
func whole(data []byte) []byte {
	var kept []byte
	for len(data) > 0 {
		line, rest, ended := bytes.Cut(data, []byte("\n"))
		if ended && len(line) > 0 && line[0] == '{' && json.Valid(line) {
			kept = append(append(kept, line...), '\n')
		}
		data = rest
	}
	return kept
}

// put writes a file that appears complete or not at all.
func (s *Store) put(name string, data []byte) error {
	temporary := s.path(name + ".tmp")
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temporary, s.path(name))
	}
	if err != nil {
		_ = os.Remove(temporary)
		return err
	}
	s.syncDir()
	return nil
}

func (s *Store) syncDir() {
	if dir, err := os.Open(s.dir); err == nil {
		_ = dir.Sync()
		_ = dir.Close()
	}
}
