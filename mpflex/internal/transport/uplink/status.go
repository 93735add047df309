package uplink

import (
	"errors"
	"sync"

	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/wire"
)

// Current is a snapshot of an uplink's session.
type Current struct {
	ID      wire.SessionID
	Session *session.Session
	// Failures holds, by path number, why the last attempt to set up the path failed.
	// "": it succeeded, or there was none.
	Failures []string
}

// Current returns the session and the failures of its paths.
func (u *Uplink) Current() Current {
	u.mu.Lock()
	defer u.mu.Unlock()
	c := Current{ID: u.current.id, Session: u.current.session, Failures: make([]string, len(u.options.Paths))}
	for i, err := range u.current.failures {
		if err != nil {
			c.Failures[i] = err.Error()
		}
	}
	return c
}

// Watch sets a function that is called, in a separate goroutine, with each session of
// Run. Run waits until f returns, so f must return soon after the session is done. Call
// Watch before Run.
func (u *Uplink) Watch(f func(wire.SessionID, *session.Session)) { u.watcher = f }

// watch starts the watcher. The returned function waits for its end.
func (u *Uplink) watch(r *run) (wait func()) {
	var watching sync.WaitGroup
	if u.watcher != nil {
		watching.Go(func() { u.watcher(r.id, r.session) })
	}
	return watching.Wait
}

// note records why a path could not be set up. nil: it was.
func (u *Uplink) note(r *run, i int, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if errors.Is(err, errRecovered) {
		err = nil
	}
	r.failures[i] = err
}
