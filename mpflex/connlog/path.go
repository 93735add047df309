package connlog

import (
	"time"

	"mplab/internal/jsonlog"
	"mplab/mpflex/internal/transport/session"
)

// PathEvent is the record of an event of a path.
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
	Suppressed  int     `json:"suppressed,omitempty"` // failures of the path before this one that were not logged
}

// SessionEnd is the record of the end of a session.
type SessionEnd struct {
	Event   string  `json:"event"` // "session"
	T       float64 `json:"t"`
	Session string  `json:"session"`
	Client  string  `json:"client,omitempty"`
	What    string  `json:"what"`    // ended
	Streams int     `json:"streams"` // streams that were open and are lost
	Error   string  `json:"error"`   // the reason
}

// OfSession returns the record of an event of a session.
func OfSession(e session.Event, id, client string) any {
	why := ""
	if e.Err != nil {
		why = e.Err.Error()
	}
	if e.What == session.Over {
		return SessionEnd{
			Event: "session", T: jsonlog.Unix(e.Time), Session: id, Client: client, What: "ended", Streams: e.Streams, Error: why,
		}
	}
	return PathEvent{
		Event: "path", T: jsonlog.Unix(e.Time), Session: id, Client: client, What: e.What, Path: e.Path, Interface: e.Name,
		Incarnation: e.Incarnation, Error: why, Suppressed: e.Suppressed,
	}
}

// Notice is the record of a fact about the program's environment that its owner should
// know.
type Notice struct {
	Event string  `json:"event"` // "notice"
	T     float64 `json:"t"`
	Text  string  `json:"text"`
}

// NewNotice returns a notice with this time.
func NewNotice(t time.Time, text string) Notice {
	return Notice{Event: "notice", T: jsonlog.Unix(t), Text: text}
}
