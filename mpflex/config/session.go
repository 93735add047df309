package config

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"mplab/mpflex/internal/transport/sched"
	"mplab/mpflex/internal/transport/session"
)

// AgentSession holds the settings of an agent's session. Zero values select the
// defaults.
type AgentSession struct {
	Scheduler    string           `json:"scheduler"`
	KeepaliveS   float64          `json:"keepalive_s"`    // silence of a path with open streams before it is pinged
	PathTimeoutS float64          `json:"path_timeout_s"` // the session ends after this time without a path
	WindowBytes  int              `json:"window_bytes"`   // of a stream
	MemoryBytes  int              `json:"memory_bytes"`   // received bytes that wait for readers, over all streams
	MaxStreams   int              `json:"max_streams"`
	BudgetBytes  int64            `json:"budget_bytes"`      // of memory for all sessions
	Feeding      string           `json:"feeding"`           // LateFeeding, the default, or BufferedFeeding
	SendBuffer   int              `json:"send_buffer_bytes"` // of each path, with BufferedFeeding
	Reinjection  AgentReinjection `json:"reinjection"`
}

// LateFeeding and BufferedFeeding are the values of AgentSession.Feeding: they bound the
// bytes that are handed to the TCP of a path.
const (
	LateFeeding     = "late"     // as many as it can send at once
	BufferedFeeding = "buffered" // as many as its send buffer takes
)

// ProxySession holds the settings of a proxy's sessions.
type ProxySession = AgentSession

// AgentReinjection selects the copies that are made of late messages. All are enabled
// by default.
type AgentReinjection struct {
	Tail   *bool   `json:"tail"`
	Stall  *bool   `json:"stall"`
	Buffer *bool   `json:"buffer"`
	Eta    float64 `json:"eta"`   // part of the window that counts as a full receive buffer
	Share  float64 `json:"share"` // maximum bytes of tail copies, as a part of all bytes sent
}

func (c *AgentSession) check() error {
	if _, err := sched.New(c.Scheduler); err != nil {
		return fmt.Errorf("session.scheduler: %w", err)
	}
	switch {
	case c.Feeding != "" && c.Feeding != LateFeeding && c.Feeding != BufferedFeeding:
		return fmt.Errorf("session.feeding: %q is not known; give %q or %q", c.Feeding, LateFeeding, BufferedFeeding)
	case c.SendBuffer != 0 && c.Feeding != BufferedFeeding:
		return fmt.Errorf("session.send_buffer_bytes: only with the feeding %q", BufferedFeeding)
	}
	for _, v := range []struct {
		key                string
		value, least, most float64 // value 0 selects the default
	}{
		{"keepalive_s", c.KeepaliveS, 0.1, 3600},
		{"path_timeout_s", c.PathTimeoutS, 1, 86400},
		{"window_bytes", float64(c.WindowBytes), 64 << 10, 1 << 28},
		{"memory_bytes", float64(c.MemoryBytes), 1 << 20, 1 << 36},
		{"budget_bytes", float64(c.BudgetBytes), 16 << 20, 1 << 40},
		{"max_streams", float64(c.MaxStreams), 1, 1 << 20},
		{"send_buffer_bytes", float64(c.SendBuffer), 16 << 10, 1 << 26},
		{"reinjection.eta", c.Reinjection.Eta, 0.05, 1},
		{"reinjection.share", c.Reinjection.Share, 0.001, 1},
	} {
		if v.value != 0 && (v.value < v.least || v.value > v.most) {
			return fmt.Errorf("session.%s: %s is not within %s and %s", v.key, plain(v.value), plain(v.least), plain(v.most))
		}
	}
	return nil
}

// Config returns the settings in the form of package session.
func (c *AgentSession) Config() session.Config {
	off := func(on *bool) bool { return on != nil && !*on }
	r := c.Reinjection
	buffer := 0
	if c.Feeding == BufferedFeeding {
		buffer = cmp.Or(c.SendBuffer, session.DefaultSendBuffer)
	}
	return session.Config{
		Scheduler: c.Scheduler, Window: c.WindowBytes, Memory: c.MemoryBytes, MaxStreams: c.MaxStreams, SendBuffer: buffer,
		Keepalive: seconds(c.KeepaliveS).Round(time.Millisecond), PathTimeout: seconds(c.PathTimeoutS),
		Reinjection: session.Reinjection{
			NoTail: off(r.Tail), NoStall: off(r.Stall), NoBuffer: off(r.Buffer), Eta: r.Eta, Share: r.Share,
		},
	}
}

// Default memory of all sessions of a program, in bytes. The agent's is smaller because
// a phone ends programs that use much memory.
const (
	DefaultAgentBudget = 128 << 20
	DefaultProxyBudget = 512 << 20
)

// Budget returns the memory of all sessions in bytes, see [session.Budget]. otherwise
// is the default.
func (c *AgentSession) Budget(otherwise int64) int64 { return cmp.Or(c.BudgetBytes, otherwise) }

func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
