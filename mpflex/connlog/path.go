package connlog

import "mplab/mpflex/session"

// PathEvent is the record of something that happened to a path of a session.
type PathEvent struct {
	Event       string  `json:"event"` // "path"
	T           float64 `json:"t"`
	Session     string  `json:"session"`
	Client      string  `json:"client,omitempty"`
	What        string  `json:"what"` // attached, stalled, recovered, ended, failed
	Path        uint8   `json:"path"`
	Interface   string  `json:"interface"`
	Incarnation uint32  `json:"incarnation"`
	Error       string  `json:"error,omitempty"`
}

// NewPathEvent returns the record of an event of a session.
func NewPathEvent(e session.Event, id string) PathEvent {
	p := PathEvent{
		Event: "path", T: Unix(e.Time), Session: id, What: e.What, Path: e.Path, Interface: e.Name, Incarnation: e.Incarnation,
	}
	if e.Err != nil {
		p.Error = e.Err.Error()
	}
	return p
}
