package connlog

import (
	"sync"
	"time"
)

// How often a Throttle lets something through.
const (
	ThrottleBurst = 32                     // at once
	ThrottlePause = 100 * time.Millisecond // between two of them in the long run
)

// Throttle is a token bucket: what strangers do must not fill the disk. The zero
// Throttle is full.
type Throttle struct {
	mu         sync.Mutex
	spent      int
	filled     time.Time // when the last token came back
	suppressed uint64
}

// Take tells whether a record may be written now, and how many were not since
// the last one that was.
func (t *Throttle) Take(now time.Time) (suppressed uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.spent == 0 {
		t.filled = now
	} else if came := int(now.Sub(t.filled) / ThrottlePause); came > 0 {
		t.spent = max(t.spent-came, 0)
		t.filled = t.filled.Add(time.Duration(came) * ThrottlePause)
	}
	if t.spent == ThrottleBurst {
		t.suppressed++
		return 0, false
	}
	t.spent++
	suppressed, t.suppressed = t.suppressed, 0
	return suppressed, true
}
