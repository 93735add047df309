package status

import (
	"slices"

	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/transport/session"
)

// Report is a program at one moment.
type Report struct {
	Role        string      `json:"role"` // agent, proxy
	PID         int         `json:"pid"`
	Transport   string      `json:"transport,omitempty"` // of an agent
	T           float64     `json:"t"`                   // unix seconds
	UptimeS     float64     `json:"uptime_s"`
	Goroutines  int         `json:"goroutines"`
	Connections Connections `json:"connections"`
	Sessions    []Session   `json:"sessions"`
	// OwnConnections are those that no session carries; nil: not asked for.
	OwnConnections []Connection `json:"connection_list,omitzero"`
}

// Connections are those of applications that a program carries, over sessions
// or not.
type Connections struct {
	Open      int   `json:"open"`
	Ended     int64 `json:"ended"`
	BytesUp   int64 `json:"bytes_up"` // of the applications, open connections and ended ones
	BytesDown int64 `json:"bytes_down"`
}

// Session is a session at one moment.
type Session struct {
	ID     string `json:"session"`
	Client string `json:"client,omitempty"` // at the proxy
	session.Status
	Missing []Missing `json:"paths_missing,omitempty"` // at the agent
	Each    []Stream  `json:"stream_list,omitzero"`    // nil: not asked for
}

// Missing is an interface that is to carry a session, and does not, or does not
// answer: its path is stalled, and another connection cannot be made.
type Missing struct {
	Path      uint8  `json:"path"`
	Interface string `json:"interface"`
	Error     string `json:"error,omitempty"` // of the last try, if that failed
}

// Stream is a stream with what it carries, where that is known.
type Stream struct {
	session.StreamStatus
	Src connlog.Endpoint `json:"src,omitzero"`
	Dst connlog.Endpoint `json:"dst,omitzero"`
}

// Connection is a connection of an application that has a carrying connection
// of its own.
type Connection struct {
	ID        uint64           `json:"id"`               // of its record in the log
	Client    string           `json:"client,omitempty"` // at the proxy
	Transport string           `json:"transport"`
	Src       connlog.Endpoint `json:"src"`
	Dst       connlog.Endpoint `json:"dst"`
	AgeS      float64          `json:"age_s"`
	BytesUp   int64            `json:"bytes_up"`
	BytesDown int64            `json:"bytes_down"`
}

// Paths is the short report: sessions with nothing but their paths.
type Paths struct {
	T        float64        `json:"t"`
	Sessions []SessionPaths `json:"sessions"`
}

// SessionPaths are the paths of a session.
type SessionPaths struct {
	ID      string               `json:"session"`
	Client  string               `json:"client,omitempty"`
	Paths   []session.PathStatus `json:"paths"`
	Gone    []session.PathStatus `json:"paths_gone"`
	Missing []Missing            `json:"paths_missing,omitempty"`
}

// missing are the interfaces of wanted that no path of a session uses, and those
// that could not be connected when that was last tried.
func missing(wanted []Wanted, paths []session.PathStatus) (list []Missing) {
	for i, w := range wanted {
		id := uint8(i)
		attached := slices.ContainsFunc(paths, func(p session.PathStatus) bool { return p.ID == id })
		if !attached || w.Failure != "" {
			list = append(list, Missing{id, w.Interface, w.Failure})
		}
	}
	return list
}
