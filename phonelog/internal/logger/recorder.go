package logger

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"mplab/phonelog/internal/logger/record"
	"mplab/phonelog/internal/logger/store"
)

const (
	// stepLeast is the minimum step of the wall clock that is recorded.
	stepLeast = 500 * time.Millisecond
	// saidMost is the maximum number of problems reported per run.
	saidMost = 100
	// problemMost is the maximum length of a problem in characters.
	problemMost = 500
)

// recorder decides what is recorded and writes it. It is safe for concurrent
// use.
type recorder struct {
	store *store.Store
	run   string
	steps record.Steps
	hash  []byte // key for SSIDs and BSSIDs; nil: not hashed
	cells bool   // record the identity of the cell

	mu      sync.Mutex // guards the following fields
	n       uint64
	last    map[string]record.State // latest written states, by key
	seen    map[string]record.State // latest read states, by key
	said    map[string]bool
	lost    uint64
	offset  time.Duration // wall clock minus monotonic clock
	stopped bool
}

func newRecorder(s *store.Store, steps record.Steps, hash []byte, cells bool) *recorder {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	return &recorder{store: s, run: hex.EncodeToString(id[:]), steps: steps, hash: hash, cells: cells,
		last: make(map[string]record.State), seen: make(map[string]record.State), said: make(map[string]bool), offset: record.Now().Offset()}
}

// see writes the states that differ from the last written ones.
func (r *recorder) see(states ...record.State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range states {
		r.keep(s)
		record.Mark(s, record.Now(), r.run)
		key := s.Key()
		before, known := r.last[key]
		i, isInterface := s.(*record.Interface)
		gone := isInterface && !i.Present
		r.seen[key] = s
		switch {
		case gone && !known: // it was never recorded
		case !known:
			r.state(s, record.First)
		case s.Differs(before, r.steps):
			r.state(s, record.Change)
		}
		if gone { // names of tunnels change: do not accumulate them
			delete(r.last, key)
			delete(r.seen, key)
		}
	}
}

// keep removes the parts of a state that must not be recorded.
func (r *recorder) keep(s record.State) {
	switch s := s.(type) {
	case *record.WiFi:
		if r.hash != nil {
			s.SSIDHash, s.BSSIDHash = digest(r.hash, "ssid", s.SSID), digest(r.hash, "bssid", s.BSSID)
			s.SSID, s.BSSID = "", ""
		}
	case *record.Cell:
		if !r.cells {
			s.CellID, s.Area, s.PCI = nil, nil, nil
		}
	}
}

// digest returns a keyed hash of a name; "" for "".
func digest(key []byte, what, name string) string {
	if name == "" {
		return ""
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(what + "\x00" + name))
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

func (r *recorder) state(s record.State, why string) {
	r.begin()
	r.last[s.Key()] = s
	r.write(s, why)
}

// event writes a record that is not a state.
func (r *recorder) event(e record.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begin()
	r.write(e, "")
}

// say records a problem and logs it to standard error, once.
func (r *recorder) say(source string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := strings.Join(strings.Fields(strings.ToValidUTF8(err.Error(), "�")), " ")
	if letters := []rune(text); len(letters) > problemMost {
		text = string(letters[:problemMost]) + "…"
	}
	if r.said[source+"\x00"+text] || len(r.said) >= saidMost {
		return
	}
	r.said[source+"\x00"+text] = true
	fmt.Fprintf(os.Stderr, "phonelog logger: %s: %s\n", source, text)
	r.begin()
	r.write(&record.Problem{Source: source, Text: text}, "")
}

// tick closes an old file, and records steps of the wall clock.
func (r *recorder) tick() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := record.Now().Offset()
	if step := now - r.offset; step.Abs() >= stepLeast {
		r.offset = now
		r.begin()
		r.write(&record.Clock{Step: float64(step.Microseconds()) / 1e6}, "")
	}
	r.begin()
}

// rotate closes the current file.
func (r *recorder) rotate() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next()
}

// begin starts a new file if one is due, with all states, so that each file can
// be read without earlier ones. The caller holds mu.
func (r *recorder) begin() {
	if r.store.Due() {
		if err := r.next(); err != nil {
			fmt.Fprintln(os.Stderr, "phonelog logger: closing a file:", err)
		}
	}
}

func (r *recorder) next() error {
	err := r.store.Rotate()
	if r.stopped {
		return err
	}
	keys := make([]string, 0, len(r.last))
	for key := range r.last {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		r.write(r.last[key].Copy(), record.Repeat)
	}
	return err
}

// write numbers and writes a record. It counts a record that cannot be written.
func (r *recorder) write(rec record.Record, why string) {
	r.n++
	line, err := record.Encode(rec, record.Now(), r.run, r.n, why)
	if err == nil {
		err = r.store.Append(line)
	}
	if err != nil {
		if r.lost++; r.lost == 1 {
			fmt.Fprintln(os.Stderr, "phonelog logger: records are lost:", err)
		}
	}
}

// stop writes the final record.
func (r *recorder) stop(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.write(&record.Stop{Reason: reason}, "")
	r.stopped = true
}

// now returns the latest state of a key; nil: unknown.
func (r *recorder) now(key string) record.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[key]
}

// counts returns the numbers of written and lost records of this run.
func (r *recorder) counts() (numbered, lost uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n, r.lost
}
