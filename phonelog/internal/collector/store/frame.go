package store

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// prefix is the start of a batch header; no record has this kind.
const prefix = `{"kind":"batch",`

// headerMost is the maximum size of a header in bytes.
const headerMost = 1024

// header is the line before the lines of a batch.
type header struct {
	Kind     string  `json:"kind"` // "batch"
	ID       string  `json:"id"`
	Received float64 `json:"received"` // in unix seconds
	Lines    int     `json:"lines"`
	Bytes    int64   `json:"bytes"`  // size of the lines
	SHA256   string  `json:"sha256"` // hash of the lines
}

// frame returns a batch in its stored form.
func frame(id string, content []byte, sum [sha256.Size]byte, received float64) ([]byte, error) {
	line, err := json.Marshal(header{"batch", id, received, bytes.Count(content, []byte("\n")), int64(len(content)), hex.EncodeToString(sum[:])})
	if err != nil {
		return nil, err
	}
	return append(append(line, '\n'), content...), nil
}

// parseHeader reads a header with its line end.
func parseHeader(line []byte) (h header, sum [sha256.Size]byte, ok bool) {
	if !bytes.HasPrefix(line, []byte(prefix)) || !bytes.HasSuffix(line, []byte("\n")) || json.Unmarshal(line, &h) != nil {
		return h, sum, false
	}
	raw, err := hex.DecodeString(h.SHA256)
	if err != nil || len(raw) != len(sum) || h.ID == "" || h.Bytes <= 0 {
		return h, sum, false
	}
	copy(sum[:], raw)
	return h, sum, true
}

// found is a batch in a file.
type found struct {
	id  string
	sum [sha256.Size]byte
}

// walk returns the batches in a file. With verify it checks their content
// against the hash. whole is the end of the last complete batch; damage holds
// the places before it that cannot be read.
func walk(file *os.File, verify bool) (all []found, whole int64, damage []int64, err error) {
	info, err := file.Stat()
	if err != nil {
		return nil, 0, nil, err
	}
	size := info.Size()
	for at := int64(0); at < size; {
		f, end, ok, err := batchAt(file, at, size, verify)
		if err != nil {
			return nil, 0, nil, err
		}
		if ok {
			all, at, whole = append(all, f), end, end
			continue
		}
		next, err := search(file, at+1, size)
		if err != nil {
			return nil, 0, nil, err
		}
		if next < 0 {
			break
		}
		damage = append(damage, at)
		at = next
	}
	return all, whole, damage, nil
}

// batchAt reads the batch at an offset.
func batchAt(file *os.File, at, size int64, verify bool) (f found, end int64, ok bool, err error) {
	line, err := bufio.NewReaderSize(io.NewSectionReader(file, at, headerMost), headerMost).ReadSlice('\n')
	if errors.Is(err, io.EOF) || errors.Is(err, bufio.ErrBufferFull) {
		return found{}, 0, false, nil
	}
	if err != nil {
		return found{}, 0, false, err
	}
	h, sum, ok := parseHeader(line)
	begin := at + int64(len(line))
	if !ok || h.Bytes > size-begin {
		return found{}, 0, false, nil
	}
	end = begin + h.Bytes
	if verify {
		hash := sha256.New()
		if _, err := io.Copy(hash, io.NewSectionReader(file, begin, h.Bytes)); err != nil {
			return found{}, 0, false, err
		}
		if !bytes.Equal(hash.Sum(nil), sum[:]) {
			return found{}, 0, false, nil
		}
	}
	return found{h.ID, sum}, end, true, nil
}

// search returns the start of the next complete batch after an unreadable
// place, or -1.
func search(file *os.File, from, size int64) (int64, error) {
	r := bufio.NewReaderSize(io.NewSectionReader(file, from, size-from), 64<<10)
	at := from
	fresh := false // at is the start of a line
	for {
		line, err := r.ReadSlice('\n')
		if fresh && bytes.HasPrefix(line, []byte(prefix)) {
			_, _, ok, failed := batchAt(file, at, size, true)
			if failed != nil || ok {
				return at, failed
			}
		}
		at += int64(len(line))
		fresh = len(line) > 0 && line[len(line)-1] == '\n'
		switch {
		case errors.Is(err, io.EOF):
			return -1, nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return -1, fmt.Errorf("searching: %w", err)
		}
	}
}
