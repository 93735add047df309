package uplink

import (
	"errors"
	"net"
	"strings"
	"time"
)

const (
	// remindAfter is how long the same failure is not reported again.
	remindAfter = 10 * time.Minute
	// mostKinds bounds the kinds of failures that are reported while a path is not set
	// up.
	mostKinds = 16
)

// failures decides which failures of a path are reported: each kind once until the path
// is attached, and again after remindAfter.
type failures struct {
	reported   map[string]time.Time // time of the last report, by kind
	suppressed int                  // failures since the last report
}

// failed decides whether to report a failure. It returns how many were suppressed
// before it.
func (f *failures) failed(err error, now time.Time) (suppressed int, tell bool) {
	what := kind(err)
	last, known := f.reported[what]
	if known && now.Sub(last) < remindAfter || !known && len(f.reported) >= mostKinds {
		var state *changeError
		if !errors.As(err, &state) { // not an attempt
			f.suppressed++
		}
		return 0, false
	}
	f.known(err, now)
	suppressed, f.suppressed = f.suppressed, 0
	return suppressed, true
}

// known records a failure that was reported in another way.
func (f *failures) known(err error, now time.Time) {
	if f.reported == nil {
		f.reported = map[string]time.Time{}
	}
	f.reported[kind(err)] = now
}

// over resets the state when the path is attached. It returns how many failures were
// suppressed.
func (f *failures) over() int {
	n := f.suppressed
	*f = failures{}
	return n
}

// kind returns the text of an error without the addresses of the connection, which
// differ in each attempt.
func kind(err error) string {
	text := err.Error()
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		text = strings.Replace(text, op.Error(), op.Op+": "+op.Err.Error(), 1)
	}
	return text
}
