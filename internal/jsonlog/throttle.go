package jsonlog

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits of a Throttle.
const (
	ThrottleBurst = 32                     // at once
	ThrottlePause = 100 * time.Millisecond // average interval
)

// Throttle is a token bucket: strangers must not be able to fill the disk. The
// zero Throttle is full.
type Throttle struct {
	mu         sync.Mutex
	bucket     *rate.Limiter // nil before the first Take
	suppressed uint64
}

// Take reports whether a record may be written now, and how many were
// suppressed since the last one.
func (t *Throttle) Take(now time.Time) (suppressed uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bucket == nil {
		t.bucket = rate.NewLimiter(rate.Every(ThrottlePause), ThrottleBurst)
	}
	if !t.bucket.AllowN(now, 1) {
		t.suppressed++
		return 0, false
	}
	suppressed, t.suppressed = t.suppressed, 0
	return suppressed, true
}
