package status

import (
	"slices"

	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/transport/session"
)

// Report is a snapshot of a program.
type Report struct {
	Role        string      `json:"role"` // agent, proxy
	PID         int         `json:"pid"`
	Transport   string      `json:"transport,omitempty"` // of an agent
	T           float64     `json:"t"`                   // unix seconds
	UptimeS     float64     `json:"uptime_s"`
	Goroutines  int         `json:"goroutines"`
	Connections Connections `json:"connections"`
	Sessions    []Session   `json:"sessions"`
	// OwnConnections are those that no session carries. nil: not requested.
	OwnConnections []Connection `json:"connection_list,omitzero"`
}

// Connections counts the carried connections of applications, in sessions or not.
type Connections struct {
	Open      int   `json:"open"`
	Ended     int64 `json:"ended"`
	BytesUp   int64 `json:"bytes_up"` // of applications' open and ended connections
	BytesDown int64 `json:"bytes_down"`
}

// Session is a snapshot of a session.
type Session struct {
	ID     string `json:"session"`
	Client string `json:"client,omitempty"` // at the proxy
	session.Status
	Missing []Missing `json:"paths_missing,omitempty"` // at the agent
	Each    []Stream  `json:"stream_list,omitzero"`    // nil: not requested
}

// Missing is an interface without a working path: it has no path, or its path is
// stalled and a replacement could not be attached.
type Missing struct {
	Path      uint8  `json:"path"`
	Interface string `json:"interface"`
	Error     string `json:"error,omitempty"` // of the last attempt, if it failed
}

// Stream is a stream with its connection, if known.
type Stream struct {
	session.StreamStatus
	Src connlog.Endpoint `json:"src,omitzero"`
	Dst connlog.Endpoint `json:"dst,omitzero"`
}

// Connection is an application's connection that has its own carrying connection.
type Connection struct {
	ID        uint64           `json:"id"`               // of its log record
	Client    string           `json:"client,omitempty"` // at the proxy
	Transport string           `json:"transport"`
	Src       connlog.Endpoint `json:"src"`
	Dst       connlog.Endpoint `json:"dst"`
	AgeS      float64          `json:"age_s"`
	BytesUp   int64            `json:"bytes_up"`
	BytesDown int64            `json:"bytes_down"`
}

// Paths is the short report: sessions with only their paths.
type Paths struct {
	T        float64        `json:"t"`
	Sessions []SessionPaths `json:"sessions"`
}

// SessionPaths holds the paths of a session.
type SessionPaths struct {
	ID      string               `json:"session"`
	Client  string               `json:"client,omitempty"`
	Paths   []session.PathStatus `json:"paths"`
	Gone    []session.PathStatus `json:"paths_gone"`
	Missing []Missing            `json:"paths_missing,omitempty"`
}

// missing returns the wanted interfaces that no path uses, and those whose last attempt
// to attach failed.
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
