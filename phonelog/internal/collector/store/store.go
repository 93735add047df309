package store

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Reasons why a batch is not stored.
var (
	ErrConflict = errors.New("this batch is stored with other content")
	ErrFull     = errors.New("the disk is full")
	ErrLocked   = errors.New("another collector uses it")
	ErrClosed   = errors.New("the collector ends")
)

// verified is the number of a device's newest files that are completely
// verified at the start. A power failure can have torn the last write, which
// may have been just before midnight.
const verified = 2

// idForm is the form of an ID, which is used in paths and logs.
var idForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// CheckID returns an error if id cannot be the ID of a batch.
func CheckID(id string) error {
	if !idForm.MatchString(id) {
		return fmt.Errorf("%.130q cannot be the id of a batch: up to 128 of A-Z, a-z, 0-9, '.', '_' and '-'", id)
	}
	return nil
}

// dayForm is the form of a file name: the day, and a number if an earlier file
// of the day was abandoned after a disk error.
var dayForm = regexp.MustCompile(`^(\d{4}-\d{2}-\d{2})(?:\.(\d{1,6}))?\.jsonl$`)

// key and sum are truncated hashes of the ID and the content of a batch. All
// batches ever stored are kept in memory in this form.
type (
	key [16]byte
	sum [16]byte
)

func keyOf(id string) key {
	h := sha256.Sum256([]byte(id))
	return key(h[:16])
}

// Store is the directory of all devices. It is safe for concurrent use.
type Store struct {
	dir     string
	minFree int64
	lock    *os.File

	mu      sync.Mutex // guards the following fields
	devices map[string]*device
	closed  bool
	running sync.WaitGroup // writes in progress
}

// device holds the uploads of one device.
type device struct {
	store *Store
	dir   string

	mu      sync.Mutex // guards the following fields
	known   map[key]sum
	pending map[key]*entry
	queue   []*entry
	writing bool
	segment map[string]int // by day, if not 0
}

// entry is a batch that is being stored.
type entry struct {
	key  key
	sum  sum
	data []byte
	done chan struct{}
	err  error // valid when done is closed
}

// Report describes the state of the directory at the start.
type Report struct {
	Devices int
	Batches int
	Torn    []string // files that hold the torn ends
	Damaged []string // unreadable places before readable batches
}

// Open opens a directory, creates it if it is missing, and reads which batches
// it holds. Put refuses batches that would leave less than minFree bytes free
// on the disk.
func Open(dir string, minFree int64) (*Store, Report, error) {
	var report Report
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, report, fmt.Errorf("store: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, report, fmt.Errorf("store: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrLocked
		}
		return nil, report, fmt.Errorf("store %s: %w", dir, err)
	}
	s := &Store{dir: dir, minFree: minFree, lock: lock, devices: make(map[string]*device)}
	entries, err := os.ReadDir(dir)
	if err == nil {
		for _, entry := range entries {
			if entry.IsDir() && err == nil {
				err = s.device(entry.Name()).recover(&report)
			}
		}
	}
	if err != nil {
		_ = lock.Close()
		return nil, report, fmt.Errorf("store: %w", err)
	}
	report.Devices = len(s.devices)
	return s, report, nil
}

// device returns a device and creates it if necessary.
func (s *Store) device(name string) *device {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.devices[name]
	if d == nil {
		d = &device{store: s, dir: filepath.Join(s.dir, name), known: make(map[key]sum), pending: make(map[key]*entry), segment: make(map[string]int)}
		s.devices[name] = d
	}
	return d
}

// Put stores a batch. It returns when the batch is on the disk: true if it is
// new, false if it was already stored. Errors are ErrConflict, ErrFull,
// ErrClosed and those of the disk; then the batch is not stored.
func (s *Store) Put(deviceName, id string, content []byte) (created bool, err error) {
	if len(content) == 0 {
		return false, errors.New("the batch is empty")
	}
	hash := sha256.Sum256(content)
	data, err := frame(id, content, hash, float64(time.Now().UnixMicro())/1e6)
	if err != nil {
		return false, err
	}
	e := &entry{key: keyOf(id), sum: sum(hash[:16]), data: data, done: make(chan struct{})}
	d := s.device(deviceName)
	d.mu.Lock()
	if earlier, known := d.known[e.key]; known {
		d.mu.Unlock()
		if earlier != e.sum {
			return false, ErrConflict
		}
		return false, nil
	}
	if other := d.pending[e.key]; other != nil {
		d.mu.Unlock()
		if other.sum != e.sum {
			return false, ErrConflict
		}
		<-other.done
		return false, other.err
	}
	if !s.enter() {
		d.mu.Unlock()
		return false, ErrClosed
	}
	defer s.running.Done()
	d.pending[e.key] = e
	d.queue = append(d.queue, e)
	if !d.writing {
		d.writing = true
		go d.write()
	}
	d.mu.Unlock()
	<-e.done
	return e.err == nil, e.err
}

// enter registers a write that Close must wait for. It returns false if the
// store is closed.
func (s *Store) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.running.Add(1)
	return true
}

// write stores the queue until it is empty. It combines the batches that
// arrived during a write into one write.
func (d *device) write() {
	for {
		d.mu.Lock()
		batch := d.queue
		d.queue = nil
		if len(batch) == 0 {
			d.writing = false
			d.mu.Unlock()
			return
		}
		d.mu.Unlock()
		err := d.commit(batch)
		d.mu.Lock()
		for _, e := range batch {
			e.err = err
			delete(d.pending, e.key)
			if err == nil {
				d.known[e.key] = e.sum
			}
			close(e.done)
		}
		d.mu.Unlock()
	}
}

// commit appends entries to the file of the day, either all or none.
func (d *device) commit(batch []*entry) error {
	size := int64(0)
	for _, e := range batch {
		size += int64(len(e.data))
	}
	if err := d.store.room(size); err != nil {
		return err
	}
	day := time.Now().UTC().Format(time.DateOnly)
	path := filepath.Join(d.dir, day+".jsonl")
	if n := d.segment[day]; n > 0 { // only this goroutine and recover use segment
		path = filepath.Join(d.dir, fmt.Sprintf("%s.%d.jsonl", day, n))
	}
	file, err := d.open(path)
	if err != nil {
		return full(err)
	}
	defer file.Close() //nolint:errcheck // synced
	info, err := file.Stat()
	if err != nil {
		return err
	}
	data := batch[0].data
	if len(batch) > 1 {
		data = make([]byte, 0, size)
		for _, e := range batch {
			data = append(data, e.data...)
		}
	}
	if _, err = file.Write(data); err == nil {
		err = file.Sync()
	}
	if err != nil {
		// The state of the file is unknown now. If it cannot be restored,
		// abandon the file.
		if undo := errors.Join(file.Truncate(info.Size()), file.Sync()); undo != nil {
			d.segment[day]++
		}
		return full(err)
	}
	return nil
}

// open opens a file for appending, and creates and syncs it if it is missing.
func (d *device) open(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if !errors.Is(err, fs.ErrNotExist) {
		return file, err
	}
	switch err := os.Mkdir(d.dir, 0o700); {
	case err == nil:
		if err := syncDir(d.store.dir); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrExist):
		return nil, err
	}
	if file, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	if err := syncDir(d.dir); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// full returns ErrFull for the errors of a full disk.
func full(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

// room returns ErrFull if too little space would remain free.
func (s *Store) room(size int64) error {
	var disk unix.Statfs_t
	if err := unix.Statfs(s.dir, &disk); err != nil {
		return err
	}
	if free := int64(disk.Bavail) * disk.Bsize; free-size < s.minFree {
		return fmt.Errorf("%w: %d bytes are free, %d are to stay free", ErrFull, free, s.minFree)
	}
	return nil
}

// Healthy returns the reason why no batch could be stored now, or nil.
func (s *Store) Healthy() error { return s.room(0) }

// Counts returns the number of devices and batches.
func (s *Store) Counts() (devices, batches int) {
	s.mu.Lock()
	all := make([]*device, 0, len(s.devices))
	for _, d := range s.devices {
		all = append(all, d)
	}
	s.mu.Unlock()
	for _, d := range all {
		d.mu.Lock()
		batches += len(d.known)
		d.mu.Unlock()
	}
	return len(all), batches
}

// Close waits for writes in progress and unlocks the directory.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.running.Wait()
	return s.lock.Close()
}
