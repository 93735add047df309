package config

import (
	"fmt"
	"strconv"
	"time"

	"mplab/mpflex/sched"
	"mplab/mpflex/session"
)

// AgentSession are the settings of an agent's session; what is left out has
// its default.
type AgentSession struct {
	Scheduler    string           `json:"scheduler"`
	KeepaliveS   float64          `json:"keepalive_s"`    // silence of a path with open streams before it is probed
	PathTimeoutS float64          `json:"path_timeout_s"` // without a path the session ends after so long
	WindowBytes  int              `json:"window_bytes"`   // of a stream
	MemoryBytes  int              `json:"memory_bytes"`   // of what waits for readers, all streams together
	MaxStreams   int              `json:"max_streams"`
	Reinjection  AgentReinjection `json:"reinjection"`
}

// ProxySession are those of a proxy's sessions.
type ProxySession = AgentSession

// AgentReinjection says which copies of late messages are made. All are unless
// they are switched off.
type AgentReinjection struct {
	Tail   *bool   `json:"tail"`
	Stall  *bool   `json:"stall"`
	Buffer *bool   `json:"buffer"`
	Eta    float64 `json:"eta"`   // share of the window for the rule of the receive buffer
	Share  float64 `json:"share"` // most bytes of copies of tails, as a share of all
}

func (c *AgentSession) check() error {
	if _, err := sched.New(c.Scheduler); err != nil {
		return fmt.Errorf("session.scheduler: %w", err)
	}
	for _, v := range []struct {
		key                string
		value, least, most float64 // of value 0 the default is taken
	}{
		{"keepalive_s", c.KeepaliveS, 0.1, 3600},
		{"path_timeout_s", c.PathTimeoutS, 1, 86400},
		{"window_bytes", float64(c.WindowBytes), 64 << 10, 1 << 28},
		{"memory_bytes", float64(c.MemoryBytes), 1 << 20, 1 << 36},
		{"max_streams", float64(c.MaxStreams), 1, 1 << 20},
		{"reinjection.eta", c.Reinjection.Eta, 0.05, 1},
		{"reinjection.share", c.Reinjection.Share, 0.001, 1},
	} {
		if v.value != 0 && (v.value < v.least || v.value > v.most) {
			return fmt.Errorf("session.%s: %s is not within %s and %s", v.key, plain(v.value), plain(v.least), plain(v.most))
		}
	}
	return nil
}

// Config are the settings in the form of package session.
func (c *AgentSession) Config() session.Config {
	off := func(on *bool) bool { return on != nil && !*on }
	r := c.Reinjection
	return session.Config{
		Scheduler: c.Scheduler, Window: c.WindowBytes, Memory: c.MemoryBytes, MaxStreams: c.MaxStreams,
		Keepalive: seconds(c.KeepaliveS).Round(time.Millisecond), PathTimeout: seconds(c.PathTimeoutS),
		Reinjection: session.Reinjection{
			NoTail: off(r.Tail), NoStall: off(r.Stall), NoBuffer: off(r.Buffer), Eta: r.Eta, Share: r.Share,
		},
	}
}

func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
