package uplink

import (
	"errors"
	"sync"

	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/wire"
)

// Current is the session of an uplink at one moment.
type Current struct {
	ID      wire.SessionID
	Session *session.Session
	// Failures say, by the number of the path, why the last try to set it up
	// failed; "": it did not, or there was none.
	Failures []string
}

// Current tells which session there is now, and what it lacks.
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

// Watch makes f be called, in a goroutine of its own, with each session that
// Run keeps. Run waits for its return, which must come soon after the session
// is done. To be called before Run.
func (u *Uplink) Watch(f func(wire.SessionID, *session.Session)) { u.watcher = f }

// watch calls the watcher; what it returns waits for it.
func (u *Uplink) watch(r *run) (wait func()) {
	var watching sync.WaitGroup
	if u.watcher != nil {
		watching.Go(func() { u.watcher(r.id, r.session) })
	}
	return watching.Wait
}

// note takes note of why a path could not be set up, or that it was.
func (u *Uplink) note(r *run, i int, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if errors.Is(err, errRecovered) {
		err = nil
	}
	r.failures[i] = err
}
