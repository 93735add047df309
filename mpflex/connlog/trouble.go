package connlog

import (
	"sync"
	"time"

	"mplab/internal/jsonlog"
	"mplab/mpflex/internal/transport/session"
)

// Memory is the record of a shortage of memory for sessions; at the proxy, of one
// client.
type Memory struct {
	Event   string  `json:"event"` // "memory"
	T       float64 `json:"t"`
	Client  string  `json:"client,omitempty"`
	Own     int64   `json:"client_used_bytes"`  // used by the client's sessions, or the agent's
	Share   int64   `json:"client_limit_bytes"` // that they may use now
	Used    int64   `json:"used_bytes"`         // used by all clients
	Limit   int64   `json:"limit_bytes"`
	Refused int64   `json:"streams_refused"` // since the start of the program
	Reset   int64   `json:"streams_reset"`
}

// NewMemory returns the record of a shortage.
func NewMemory(s session.Shortage) Memory {
	return Memory{
		Event: "memory", T: jsonlog.Unix(time.Now()), Client: s.Client, Own: s.Own, Share: s.Share, Used: s.Used, Limit: s.Limit, Refused: s.Refused, Reset: s.Reset,
	}
}

// Listener is the record of failures to accept connections.
type Listener struct {
	Event   string   `json:"event"` // "listener"
	T       float64  `json:"t"`
	Address Endpoint `json:"address"`
	Error   string   `json:"error"`
	Failed  uint64   `json:"failed"` // failures since the last such record
}

// listenerEvery is the minimum time between two such records of a listener.
const listenerEvery = 30 * time.Second

// Listening returns a function that logs the failures of a listener: the first one at
// once, further ones at most every 30 s.
func Listening(l *jsonlog.Log, address Endpoint) func(error) {
	var mu sync.Mutex
	var last time.Time
	var failed uint64
	return func(err error) {
		mu.Lock()
		defer mu.Unlock()
		failed++
		if now := time.Now(); last.IsZero() || now.Sub(last) >= listenerEvery {
			l.Write(Listener{Event: "listener", T: jsonlog.Unix(now), Address: address, Error: err.Error(), Failed: failed})
			last, failed = now, 0
		}
	}
}
