package uplink

import (
	"errors"
	"net"
	"strings"
	"time"
)

const (
	// remindAfter is when a failure that goes on is told again.
	remindAfter = 10 * time.Minute
	// mostKinds bounds the kinds of failures that are told of a path that is not
	// set up.
	mostKinds = 16
)

// failures decide which failures of a path are told: each kind once until the
// path is there, and again when it goes on for long.
type failures struct {
	told       map[string]time.Time // when, by kind
	suppressed int                  // since the last that was told
}

// failed says whether a failure is told, and how many were not before it.
func (f *failures) failed(err error, now time.Time) (suppressed int, tell bool) {
	what := kind(err)
	last, known := f.told[what]
	if known && now.Sub(last) < remindAfter || !known && len(f.told) >= mostKinds {
		var state *changeError
		if !errors.As(err, &state) { // which is no try
			f.suppressed++
		}
		return 0, false
	}
	f.known(err, now)
	suppressed, f.suppressed = f.suppressed, 0
	return suppressed, true
}

// known takes note of a failure that was told by other means.
func (f *failures) known(err error, now time.Time) {
	if f.told == nil {
		f.told = map[string]time.Time{}
	}
	f.told[kind(err)] = now
}

// over says how many failures were not told, when the path is there.
func (f *failures) over() int {
	n := f.suppressed
	*f = failures{}
	return n
}

// kind is what an error says without the addresses of the connection, which are
// others with each.
func kind(err error) string {
	text := err.Error()
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		text = strings.Replace(text, op.Error(), op.Op+": "+op.Err.Error(), 1)
	}
	return text
}
