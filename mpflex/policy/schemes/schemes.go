package schemes

import (
	"sync"

	"mplab/mpflex/internal/transport/sched"
	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/policy"
)

// Set holds the schemes of one side of a session. It makes each one when a stream needs
// it. It is safe for concurrent use.
type Set struct {
	scheduler string // the session's default

	mu   sync.Mutex
	made map[string]*session.Scheme // by policy.Scheme.String
}

// mostMade bounds the schemes of a set: a few times those of a table. A full set is
// emptied. Streams keep their schemes.
const mostMade = 1024

// NewSet returns the set of a session whose default scheduler is scheduler, as in
// session.Config.
func NewSet(scheduler string) *Set {
	return &Set{scheduler: scheduler, made: make(map[string]*session.Scheme)}
}

// Of returns the argument for session.Stream.SetScheme. Equal schemes give the same
// result, so that their streams take turns, even after a reload of the rules, until the
// set is full. It fails if this side does not have the scheduler.
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

// OfLabel is Of for a label of the other side's table. An unknown label counts as label
// 0.
func (s *Set) OfLabel(table *policy.Table, label byte) (*session.Scheme, error) {
	scheme, known := table.Scheme(label)
	if !known {
		scheme, _ = table.Scheme(0)
	}
	return s.Of(scheme)
}
