package netx

import (
	"sync/atomic"
	"time"
)

// began is what Activity counts from: a clock that is never set.
var began = time.Now()

// Activity remembers when something last happened, for idle timeouts. Who waits
// in a read looks at Left when the read's deadline has passed, so that activity
// itself sets no timer. It is safe for concurrent use.
type Activity struct{ last atomic.Int64 }

// Touch says that something happens now.
func (a *Activity) Touch() { a.last.Store(int64(time.Since(began))) }

// Last returns when something last happened, counted from the start of the
// program.
func (a *Activity) Last() time.Duration { return time.Duration(a.last.Load()) }

// Left returns how long until nothing has happened for the limit; it is not
// positive when that is now.
func (a *Activity) Left(limit time.Duration) time.Duration {
	return a.Last() + limit - time.Since(began)
}
