package agent

import (
	"time"

	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/status"
	"mplab/mpflex/wire"
)

// Status tells how the agent is, from now on.
func (a *Agent) Status() *status.Source {
	s := &status.Source{Role: "agent", Transport: a.config.Transport, Started: time.Now(), Open: &a.open}
	if a.uplink != nil {
		s.Sessions = a.sessions
	}
	return s
}

func (a *Agent) sessions() []status.Live {
	current := a.uplink.Current()
	live := status.Live{ID: current.ID, Session: current.Session}
	for i, path := range a.config.Paths {
		live.Wanted = append(live.Wanted, status.Wanted{Interface: path.Device, Failure: current.Failures[i]})
	}
	return []status.Live{live}
}

// logStatus has the status of each session logged, where that is configured.
func (a *Agent) logStatus() {
	if every := a.config.StatusEvery(); every > 0 {
		a.uplink.Watch(func(id wire.SessionID, s *session.Session) {
			status.Log(status.Live{ID: id, Session: s}, every, a.log.Write)
		})
	}
}
