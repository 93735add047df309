package emulator

import "time"

// clock reads the monotonic and the wall clock at one instant.
type clock struct{ base time.Time }

func newClock() clock { return clock{time.Now()} }

// now returns the ns since the start, and since the epoch.
func (c clock) now() (monotonic, wall int64) {
	t := time.Now()
	return int64(t.Sub(c.base)), t.UnixNano()
}
