package netx

import (
	"sync/atomic"
	"time"
)

// began is the origin of Activity's times, on the monotonic clock.
var began = time.Now()

// Activity records the time of the last event, for idle timeouts. A reader
// checks Left when its read deadline has passed, so that an event need not set
// a timer. It is safe for concurrent use.
type Activity struct{ last atomic.Int64 }

// Touch records an event now.
func (a *Activity) Touch() { a.last.Store(int64(time.Since(began))) }

// Last returns the time of the last event since the start of the program.
func (a *Activity) Last() time.Duration { return time.Duration(a.last.Load()) }

// Left returns the remaining time until the idle limit; it is not positive if
// the limit has passed.
func (a *Activity) Left(limit time.Duration) time.Duration {
	return a.Last() + limit - time.Since(began)
}
