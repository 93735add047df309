package wire

import (
	"fmt"
	"sync"
	"time"
)

// DefaultReplayEntries is how many nonces are stored: about 500 per second over the
// whole window.
const DefaultReplayEntries = 1 << 17

// Replay refuses hellos and attaches whose time is wrong and those seen before. It
// stores a nonce for twice MaxSkew, because a message may be dated MaxSkew ahead and is
// accepted until MaxSkew after its date. When it is full, it refuses further messages,
// so an old one can never pass.
type Replay struct {
	limit int
	began time.Time

	mu    sync.Mutex // guards the fields below
	seen  map[[NonceSize]byte]struct{}
	queue []replayEntry // by expiry, the oldest at head
	head  int
}

type replayEntry struct {
	nonce   [NonceSize]byte
	expires time.Time
}

// NewReplay returns a memory of at most limit nonces.
func NewReplay(limit int) *Replay {
	return &Replay{limit: limit, began: time.Now(), seen: make(map[[NonceSize]byte]struct{})}
}

// Now returns the time against which messages are checked: the system's time when the
// memory was made, plus the time since then. It does not change when the system's clock
// is set. Otherwise setting the clock back would permit replays.
func (r *Replay) Now() time.Time { return r.began.Add(time.Since(r.began)) }

// Accept returns nil for a new hello with a right time, otherwise ErrSkew, ErrReplay or
// ErrReplayFull.
func (r *Replay) Accept(hello Hello, now time.Time) error {
	return r.Once(hello.Time, hello.Nonce, now)
}

// Once is Accept for any authentic message with a time and a nonce.
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

// forget removes nonces that can no longer be replayed.
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
