package store

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// Batch is a file that waits for upload.
type Batch struct{ file file }

// Waiting returns the waiting files, oldest first.
func (s *Store) Waiting() []Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Batch
	for _, f := range s.files {
		if f.state == waiting {
			all = append(all, Batch{f})
		}
	}
	return all
}

// Load reads a batch: its permanent ID and its compressed lines. It returns
// fs.ErrNotExist if the batch was dropped.
func (s *Store) Load(b Batch, device string) (id string, compressed []byte, err error) {
	data, err := os.ReadFile(s.path(b.file.name()))
	if err != nil {
		return "", nil, err
	}
	content := data
	if b.file.packed {
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return "", nil, fmt.Errorf("%s: %w", b.file.name(), err)
		}
		if content, err = io.ReadAll(r); err != nil {
			return "", nil, fmt.Errorf("%s: %w", b.file.name(), err)
		}
	} else {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		content = whole(content)
		_, err := w.Write(content)
		if err = errors.Join(err, w.Close()); err != nil {
			return "", nil, err
		}
		data = packed.Bytes()
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n%d\n", device, b.file.sequence)
	hash.Write(content)
	return fmt.Sprintf("%08d-%s", b.file.sequence, hex.EncodeToString(hash.Sum(nil)[:16])), data, nil
}

// Sent records that the collector has a batch.
func (s *Store) Sent(b Batch) error { return s.become(b, sent) }

// Refused records that the collector refused a batch. It is sent again after
// the next start.
func (s *Store) Refused(b Batch) error { return s.become(b, refused) }

func (s *Store) become(b Batch, state int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.files, b.file)
	if i < 0 {
		return nil // dropped since
	}
	after := b.file
	after.state = state
	if err := os.Rename(s.path(b.file.name()), s.path(after.name())); err != nil {
		return err
	}
	s.files[i] = after
	s.syncDir()
	return nil
}
