package status

import (
	"os"
	"runtime"
	"time"

	"mplab/control"
	"mplab/internal/jsonlog"
	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/wire"
)

// Live is an open session with facts that its program adds.
type Live struct {
	ID      wire.SessionID
	Client  string // at the proxy
	Session *session.Session
	Wanted  []Wanted // at the agent: its interfaces, by path number
}

// Wanted is an interface that should carry a session.
type Wanted struct {
	Interface string
	Failure   string // why the last attempt to attach a path failed; "": it did not fail
}

// Source is a program that reports its status.
type Source struct {
	Role      string
	Transport string // of an agent
	Started   time.Time
	Open      *Open
	Sessions  func() []Live // nil: no sessions
}

// Status returns the current status.
func (s *Source) Status() Report { return s.report(false) }

// Streams returns the current status with all streams, and all connections without a
// stream.
func (s *Source) Streams() Report { return s.report(true) }

func (s *Source) report(each bool) Report {
	now := time.Now()
	r := Report{
		Role: s.Role, PID: os.Getpid(), Transport: s.Transport, T: jsonlog.Unix(now),
		UptimeS: float64(now.Sub(s.Started).Milliseconds()) / 1000, Goroutines: runtime.NumGoroutine(), Connections: s.Open.connections(), Sessions: []Session{},
	}
	for _, l := range s.live() {
		row := l.row()
		if each {
			row.Each = s.Open.streams(l.Session)
		}
		r.Sessions = append(r.Sessions, row)
	}
	if each {
		r.OwnConnections = s.Open.own()
	}
	return r
}

func (s *Source) live() []Live {
	if s.Sessions == nil {
		return nil
	}
	return s.Sessions()
}

func (l *Live) row() Session {
	row := Session{ID: l.ID.String(), Client: l.Client, Status: l.Session.Status()}
	row.Missing = missing(l.Wanted, row.Paths)
	return row
}

// Paths returns the short report.
func (s *Source) Paths() Paths {
	p := Paths{T: jsonlog.Unix(time.Now()), Sessions: []SessionPaths{}}
	for _, l := range s.live() {
		row := l.row()
		p.Sessions = append(p.Sessions, SessionPaths{row.ID, row.Client, row.Paths, row.Gone, row.Missing})
	}
	return p
}

// Operations returns the operations of the control socket: "status", "streams" and
// "paths".
func (s *Source) Operations() control.Operations {
	return control.Operations{
		"status":  func() (any, error) { return s.Status(), nil },
		"streams": func() (any, error) { return s.Streams(), nil },
		"paths":   func() (any, error) { return s.Paths(), nil },
	}
}

// Serve serves a control socket until stop is called. It does nothing if path is "".
func (s *Source) Serve(path string) (stop func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	server, err := control.Listen(path, "mpflex")
	if err != nil {
		return nil, err
	}
	server.Start(s.Operations().Answer)
	return server.Close, nil
}
