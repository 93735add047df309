package wire

import (
	"fmt"
	"sync"
	"time"
)

// DefaultReplayEntries is how many hellos are remembered: about 500 a second
// over the whole window.
const DefaultReplayEntries = 1 << 17

// Replay refuses hellos and attaches whose time is off and those seen before. A
// nonce is remembered for twice MaxSkew: a hello may be dated MaxSkew ahead and is
// accepted until MaxSkew after its date. When the memory is full further
// hellos are refused, so an old one can never pass.
type Replay struct {
	limit int
	began time.Time

	mu    sync.Mutex // guards what follows
	seen  map[[NonceSize]byte]struct{}
	queue []replayEntry // by expiry, oldest at head
	head  int
}

type replayEntry struct {
	nonce   [NonceSize]byte
	expires time.Time
}

// NewReplay returns a memory of at most limit hellos.
func NewReplay(limit int) *Replay {
	return &Replay{limit: limit, began: time.Now(), seen: make(map[[NonceSize]byte]struct{})}
}

// Now is the clock that messages are judged by: that of the system when the
// memory was made, and what has passed since. It does not jump with the
// system's, or what was said an hour ago could be said again when that is put
// back.
func (r *Replay) Now() time.Time { return r.began.Add(time.Since(r.began)) }

// Accept returns nil the first time an authentic hello of about now is shown,
// ErrSkew, ErrReplay or ErrReplayFull otherwise.
func (r *Replay) Accept(hello Hello, now time.Time) error {
	return r.Once(hello.Time, hello.Nonce, now)
}

// Once is Accept for any authentic message of a time and a nonce.
func (r *Replay) Once(at time.Time, nonce [NonceSize]byte, now time.Time) error {
	if off := now.Sub(at); off > MaxSkew || off < -MaxSkew {
		return fmt.Errorf("%w: the agent's is %s this one", ErrSkew, aheadOf(-off))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(now)
	if _, seen := r.seen[nonce]; seen {
		return ErrReplay
	}
	if len(r.seen) >= r.limit {
		return ErrReplayFull
	}
	r.seen[nonce] = struct{}{}
	r.queue = append(r.queue, replayEntry{nonce, now.Add(2 * MaxSkew)})
	return nil
}

// forget drops what can no longer be replayed.
func (r *Replay) forget(now time.Time) {
	for r.head < len(r.queue) && r.queue[r.head].expires.Before(now) {
		delete(r.seen, r.queue[r.head].nonce)
		r.head++
	}
	if r.head > len(r.queue)/2 {
		r.queue = append(r.queue[:0], r.queue[r.head:]...)
		r.head = 0
	}
}
