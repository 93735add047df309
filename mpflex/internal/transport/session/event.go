package session

import "time"

// What an event is about: a path, but for Over.
const (
	Attached  = "attached"
	Stalled   = "stalled"   // it makes no progress
	Recovered = "recovered" // it does again
	Ended     = "ended"
	Over      = "over" // the session has ended
)

// Event is something that happened to a path, or the end of the session. A
// session that never had a path nor a stream ends without.
type Event struct {
	Time        time.Time
	What        string
	Path        uint8
	Name        string // of the interface
	Incarnation uint32
	Err         error
	Streams     int // with Over: that were open, and are lost
	Suppressed  int // by who reports: failures that were not told before this
}

// mostEvents bounds the events that wait to be told.
const mostEvents = 1024

// Report puts an event of the caller's among those of the session, in its place.
// It does nothing when the session has ended.
func (s *Session) Report(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.tell(e)
	}
}

// tell has an event told, with the session locked.
func (s *Session) tell(e Event) {
	if s.config.Log == nil || len(s.events) >= mostEvents {
		return
	}
	s.events = append(s.events, e)
	s.telling.Signal()
}

// deliver tells the events until the session has ended and none is left.
func (s *Session) deliver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.err == nil || len(s.events) > 0 {
		if len(s.events) == 0 {
			s.telling.Wait()
			continue
		}
		events := s.events
		s.events = nil
		s.mu.Unlock()
		for _, e := range events {
			s.config.Log(e)
		}
		s.mu.Lock()
	}
}

func (p *Path) event(what string, err error) Event {
	return Event{Time: time.Now(), What: what, Path: p.link.ID, Name: p.link.Name, Incarnation: p.link.Incarnation, Err: err}
}
