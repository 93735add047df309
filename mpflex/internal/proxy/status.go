package proxy

import (
	"time"

	"mplab/mpflex/internal/transport/downlink"
	"mplab/mpflex/status"
)

// Status returns the source of the proxy's status. Its age counts from this call.
func (p *Proxy) Status() *status.Source {
	s := &status.Source{Role: "proxy", Started: time.Now(), Open: &p.open}
	if p.sessions != nil {
		s.Sessions = p.liveSessions
	}
	return s
}

func (p *Proxy) liveSessions() (all []status.Live) {
	for _, h := range p.sessions.Sessions() {
		all = append(all, live(h))
	}
	return all
}

func live(h downlink.Held) status.Live {
	return status.Live{ID: h.ID, Client: h.Client.Name, Session: h.Session}
}

// logStatus logs the status of a session at the configured interval.
func (p *Proxy) logStatus(h downlink.Held) {
	if every := p.config.StatusEvery(); every > 0 {
		status.Log(live(h), every, p.log.Write)
	}
}
