package session

import "time"

// The kinds of events. All but Over concern a path.
const (
	Attached  = "attached"
	Stalled   = "stalled"   // no progress
	Recovered = "recovered" // progress again
	Ended     = "ended"
	Over      = "over" // the session has ended
)

// Event is a change of a path, or the end of the session. A session that never had a
// path or a stream ends without an event.
type Event struct {
	Time        time.Time
	What        string
	Path        uint8
	Name        string // of the interface
	Incarnation uint32
	Err         error
	Streams     int // with Over: streams that were open and are lost
	Suppressed  int // set by the reporter: failures left out before this one
}

// mostEvents bounds the events that wait for delivery. Later ones are dropped.
const mostEvents = 1024

// Report queues an event of the caller behind those of the session. It does nothing
// when the session has ended.
func (s *Session) Report(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.tell(e)
	}
}

// tell queues an event. The session must be locked.
func (s *Session) tell(e Event) {
	if s.config.Log == nil || len(s.events) >= mostEvents {
		return
	}
	s.events = append(s.events, e)
	s.telling.Signal()
}

// deliver passes events to Config.Log until the session has ended and the queue is
// empty.
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
