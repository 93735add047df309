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
	// stepLeast is what the wall clock must be set by to be worth a record.
	stepLeast = 500 * time.Millisecond
	// saidMost bounds how many problems are said in a run.
	saidMost = 100
	// problemMost bounds the text of a problem, in characters.
	problemMost = 500
)

// recorder writes what is worth a record. Its methods may be called from
// everywhere.
type recorder struct {
	store *store.Store
	run   string
	steps record.Steps
	hash  []byte // key for SSIDs and BSSIDs; nil: as they are
	cells bool   // say which cell it is

	mu      sync.Mutex // guards what follows
	n       uint64
	last    map[string]record.State // as written, by key
	seen    map[string]record.State // as read, by key
	said    map[string]bool
	lost    uint64
	offset  time.Duration // of the wall clock
	stopped bool
}

func newRecorder(s *store.Store, steps record.Steps, hash []byte, cells bool) *recorder {
	var id [8]byte
	_, _ = rand.Read(id[:]) // does not fail
	return &recorder{store: s, run: hex.EncodeToString(id[:]), steps: steps, hash: hash, cells: cells,
		last: make(map[string]record.State), seen: make(map[string]record.State), said: make(map[string]bool), offset: record.Now().Offset()}
}

// see writes the states that differ from those before.
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
		case gone && !known: // nobody was told of it
		case !known:
			r.state(s, record.First)
		case s.Differs(before, r.steps):
			r.state(s, record.Change)
		}
		if gone { // names of tunnels come and go: they must not add up
			delete(r.last, key)
			delete(r.seen, key)
		}
	}
}

// keep removes from a state what is not to be recorded.
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

// digest is a keyed hash of a name; that of "" is "".
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

// event writes a record that is no state.
func (r *recorder) event(e record.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begin()
	r.write(e, "")
}

// say writes why something is not recorded, once.
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

// tick closes a file that is old, and notes when the wall clock was set.
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

// rotate closes the file that grows.
func (r *recorder) rotate() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next()
}

// begin begins another file when it is time, with all states: each file can be
// read without those before it. mu is held.
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

// write numbers a record and writes it. One that cannot be written is counted.
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

// stop writes the last record.
func (r *recorder) stop(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.write(&record.Stop{Reason: reason}, "")
	r.stopped = true
}

// now is how something was read last; nil is unknown.
func (r *recorder) now(key string) record.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[key]
}

// counts are how many records were numbered and lost in this run.
func (r *recorder) counts() (numbered, lost uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n, r.lost
}
