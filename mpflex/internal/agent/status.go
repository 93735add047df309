package agent

import (
	"time"

	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/status"
	"mplab/mpflex/wire"
)

// Status returns the source of the agent's status. Its age counts from this call.
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

// logStatus logs the status of each session at the configured interval.
func (a *Agent) logStatus() {
	if every := a.config.StatusEvery(); every > 0 {
		a.uplink.Watch(func(id wire.SessionID, s *session.Session) {
			status.Log(status.Live{ID: id, Session: s}, every, a.log.Write)
		})
	}
}
