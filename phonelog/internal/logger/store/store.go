package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mplab/phonelog/internal/logger/record"
)

// ErrLocked means that another logger uses the directory.
var ErrLocked = errors.New("another logger uses it")

// Limits bound the files.
type Limits struct {
	Bytes int64         // of the current file
	Age   time.Duration // of the current file
	Total int64         // of all files, compressed if they are
}

// States of a file.
const (
	growing = iota
	waiting
	refused
	sent
)

var form = regexp.MustCompile(`^(\d{8,19})(\.sent|\.refused)?\.jsonl(\.gz)?$`)

// file is a file in the directory.
type file struct {
	sequence uint64
	state    int
	packed   bool
	size     int64
}

func (f file) name() string {
	name := fmt.Sprintf("%08d%s.jsonl", f.sequence, map[int]string{refused: ".refused", sent: ".sent"}[f.state])
	if f.packed {
		name += ".gz"
	}
	return name
}

// ledger holds the state that file names do not contain.
type ledger struct {
	Next    uint64         `json:"next"`
	Dropped record.Dropped `json:"dropped"`
}

// Store is a directory of files. It is safe for concurrent use.
type Store struct {
	dir    string
	limits Limits
	lock   *os.File

	mu     sync.Mutex // guards the following fields
	files  []file     // without the current file; oldest first
	ledger ledger
	grows  *os.File // current file; nil: none yet
	now    file     // description of the current file
	since  time.Duration
	dirty  bool
}

// Open opens a directory, creates it if it is missing, and closes the file that
// a killed logger left open, without its incomplete last line.
func Open(dir string, limits Limits) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrLocked
		}
		return nil, fmt.Errorf("store %s: %w", dir, err)
	}
	s := &Store{dir: dir, limits: limits, lock: lock}
	if err := s.recover(); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("store: %w", err)
	}
	return s, nil
}

func (s *Store) path(name string) string { return filepath.Join(s.dir, name) }

// Append writes a line that includes its line end. After an error the line is
// lost.
func (s *Store) Append(line []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.grows == nil {
		if err := s.begin(); err != nil {
			return err
		}
	}
	s.makeRoom(int64(len(line)))
	n, err := s.grows.Write(line)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		// Other programs filled the disk; delete files that the collector has.
		_ = s.grows.Truncate(s.now.size)
		if !s.dropFirst(sent) {
			return err
		}
		n, err = s.grows.Write(line)
	}
	if err != nil {
		if n > 0 {
			_ = s.grows.Truncate(s.now.size)
		}
		return err
	}
	s.now.size += int64(n)
	s.dirty = true
	return nil
}

// begin creates the current file.
func (s *Store) begin() error {
	f := file{sequence: s.ledger.Next, state: growing}
	grows, err := os.OpenFile(s.path(f.name()), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	s.ledger.Next++
	s.grows, s.now, s.since = grows, f, record.Now().Mono
	s.syncDir()
	return nil
}

// Due reports whether the current file has reached a limit.
func (s *Store) Due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.grows != nil && s.now.size > 0 && (s.now.size >= s.limits.Bytes || record.Now().Mono-s.since >= s.limits.Age)
}

// Rotate closes the current file; the next line starts another one. Without a
// current file it does nothing.
func (s *Store) Rotate() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rotate()
}

func (s *Store) rotate() error {
	if s.grows == nil {
		return nil
	}
	err := s.grows.Sync()
	err = errors.Join(err, s.grows.Close())
	s.grows, s.dirty = nil, false
	f := s.now
	f.state = waiting
	packed, packing := s.pack(f)
	switch {
	case packing != nil: // disk full: keep it uncompressed
		s.files = append(s.files, f)
	case packed.size > 0:
		s.files = append(s.files, packed)
	}
	s.save()
	s.makeRoom(0)
	return err
}

// save writes the ledger. After a failure the sequence is derived from the
// files.
func (s *Store) save() {
	if data, err := json.Marshal(s.ledger); err == nil {
		_ = s.put("ledger.json", append(data, '\n'))
	}
}

// makeRoom deletes files until `more` additional bytes are within the limit:
// first those that the collector has, oldest first, then the oldest others,
// which are counted.
func (s *Store) makeRoom(more int64) {
	for s.total()+more > s.limits.Total && (s.dropFirst(sent) || s.dropFirst(refused, waiting)) {
	}
}

// dropFirst deletes the oldest file in one of the given states.
func (s *Store) dropFirst(states ...int) bool {
	i := slices.IndexFunc(s.files, func(f file) bool { return slices.Contains(states, f.state) })
	if i < 0 {
		return false
	}
	f := s.files[i]
	if err := os.Remove(s.path(f.name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	s.files = slices.Delete(s.files, i, i+1)
	if f.state != sent {
		s.ledger.Dropped.Batches++
		s.ledger.Dropped.Bytes += uint64(f.size)
		s.save()
	}
	return true
}

func (s *Store) total() int64 {
	total := s.now.size
	if s.grows == nil {
		total = 0
	}
	for _, f := range s.files {
		total += f.size
	}
	return total
}

// Sync syncs the current file to the disk.
func (s *Store) Sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.grows == nil || !s.dirty {
		return nil
	}
	s.dirty = false
	return s.grows.Sync()
}

// Status counts bytes and files by state.
type Status struct {
	Bytes   int64          `json:"bytes"`
	Growing int64          `json:"growing_bytes"`
	Waiting int            `json:"waiting"`
	Refused int            `json:"refused"`
	Sent    int            `json:"sent"`
	Dropped record.Dropped `json:"dropped"`
}

// Status returns the numbers of bytes and files.
func (s *Store) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := Status{Bytes: s.total(), Dropped: s.ledger.Dropped}
	if s.grows != nil {
		status.Growing = s.now.size
	}
	for _, f := range s.files {
		switch f.state {
		case waiting:
			status.Waiting++
		case refused:
			status.Refused++
		case sent:
			status.Sent++
		}
	}
	return status
}

// Close closes the current file and unlocks the directory.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.rotate(), s.lock.Close())
}
