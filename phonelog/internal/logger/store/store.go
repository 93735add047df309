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

// ErrLocked says that another logger uses the directory.
var ErrLocked = errors.New("another logger uses it")

// Limits bound the files.
type Limits struct {
	Bytes int64         // of the one that grows
	Age   time.Duration // of the one that grows
	Total int64         // of all, compressed as they are
}

// The states of a file.
const (
	growing = iota
	waiting
	refused
	sent
)

var form = regexp.MustCompile(`^(\d{8,19})(\.sent|\.refused)?\.jsonl(\.gz)?$`)

// file is one of the directory.
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

// ledger is what no file tells.
type ledger struct {
	Next    uint64         `json:"next"`
	Dropped record.Dropped `json:"dropped"`
}

// Store is a directory of files. Its methods may be called from everywhere.
type Store struct {
	dir    string
	limits Limits
	lock   *os.File

	mu     sync.Mutex // guards what follows
	files  []file     // but the one that grows; oldest first
	ledger ledger
	grows  *os.File // nil: none yet
	now    file     // the one that grows
	since  time.Duration
	dirty  bool
}

// Open opens a directory, makes it if it is not there, and closes what a killed
// logger left open: a line that is not whole is dropped.
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

// Append writes a line, which has its end. An error says that it is lost.
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
		// Others filled the disk; what the collector has can go.
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

// begin makes the file that grows.
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

// Due tells whether the file that grows has reached a limit.
func (s *Store) Due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.grows != nil && s.now.size > 0 && (s.now.size >= s.limits.Bytes || record.Now().Mono-s.since >= s.limits.Age)
}

// Rotate closes the file that grows; the next line begins another. Without one
// it does nothing.
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
	case packing != nil: // no room: it waits as it is
		s.files = append(s.files, f)
	case packed.size > 0:
		s.files = append(s.files, packed)
	}
	s.save()
	s.makeRoom(0)
	return err
}

// save writes the ledger. When it cannot, the sequence follows from the files.
func (s *Store) save() {
	if data, err := json.Marshal(s.ledger); err == nil {
		_ = s.put("ledger.json", append(data, '\n'))
	}
}

// makeRoom deletes until so many bytes more are within the bound: first what the
// collector has, oldest first, then the oldest of the rest, which is counted.
func (s *Store) makeRoom(more int64) {
	for s.total()+more > s.limits.Total && (s.dropFirst(sent) || s.dropFirst(refused, waiting)) {
	}
}

// dropFirst deletes the oldest file in one of some states.
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

// Sync writes what is not yet on the disk.
func (s *Store) Sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.grows == nil || !s.dirty {
		return nil
	}
	s.dirty = false
	return s.grows.Sync()
}

// Status is how much there is.
type Status struct {
	Bytes   int64          `json:"bytes"`
	Growing int64          `json:"growing_bytes"`
	Waiting int            `json:"waiting"`
	Refused int            `json:"refused"`
	Sent    int            `json:"sent"`
	Dropped record.Dropped `json:"dropped"`
}

// Status tells how much there is.
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

// Close closes the file that grows and lets others use the directory.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.rotate(), s.lock.Close())
}
