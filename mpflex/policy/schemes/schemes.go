package schemes

import (
	"sync"

	"mplab/mpflex/internal/transport/sched"
	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/policy"
)

// Set are the schemes of one side of one session, made when a stream needs
// them. It is safe for concurrent use.
type Set struct {
	scheduler string // the session's own

	mu   sync.Mutex
	made map[string]*session.Scheme // by policy.Scheme.String
}

// mostMade bounds the schemes of a set: a few times those of a table. It is
// emptied when it is full; streams keep what they have.
const mostMade = 1024

// NewSet returns the set of a session with its own scheduler, as in
// session.Config.
func NewSet(scheduler string) *Set {
	return &Set{scheduler: scheduler, made: make(map[string]*session.Scheme)}
}

// Of returns what to give to session.Stream.SetScheme. Equal schemes are one,
// so that their streams take turns, also when the rules were read again, until
// the set is full. It fails when this side does not know the scheduler.
func (s *Set) Of(scheme *policy.Scheme) (*session.Scheme, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := scheme.String()
	if made, known := s.made[key]; known {
		return made, nil
	}
	name := scheme.Scheduler
	if name == policy.DefaultScheduler {
		name = s.scheduler
	}
	scheduler, err := sched.New(name)
	if err != nil {
		return nil, err
	}
	made := &session.Scheme{Scheduler: scheduler, Paths: func(device string) (allowed, backup bool) {
		use := scheme.Use(device)
		return use != policy.Excluded, use == policy.Backup
	}}
	if len(s.made) >= mostMade {
		clear(s.made)
	}
	s.made[key] = made
	return made, nil
}

// OfLabel is Of for a label of the other side's table. A label that the table
// does not have is label 0.
func (s *Set) OfLabel(table *policy.Table, label byte) (*session.Scheme, error) {
	scheme, known := table.Scheme(label)
	if !known {
		scheme, _ = table.Scheme(0)
	}
	return s.Of(scheme)
}
