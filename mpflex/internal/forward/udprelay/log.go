package udprelay

import (
	"net/netip"
	"sync/atomic"
	"time"

	"mplab/internal/jsonlog"
	"mplab/mpflex/connlog"
)

// Counters count datagrams since the start of the relay. Up is from the clients.
type Counters struct {
	Up, Down           atomic.Uint64 // sent to destinations; returned to clients
	UpBytes, DownBytes atomic.Uint64 // bytes of their payload
	Denied             atomic.Uint64 // not sent: destination not allowed
	OverLimit          atomic.Uint64 // not sent: too many sockets
	Dropped            atomic.Uint64 // not sent: the socket's buffer was full
	Failed             atomic.Uint64 // not sent: socket error, or the relay was closed
	Unsolicited        atomic.Uint64 // not returned: nothing was sent to their source
	Unreachable        atomic.Uint64 // ICMP errors
}

// Record is the log record of an association.
type Record struct {
	Event         string           `json:"event"` // "udp"
	Opened        float64          `json:"opened"`
	DurationS     float64          `json:"duration_s"`
	Client        string           `json:"client,omitempty"`
	Session       string           `json:"session"`
	Association   uint32           `json:"association"`
	Local         connlog.Endpoint `json:"local"`
	Destinations  int              `json:"destinations"` // in the table at the end
	DatagramsUp   uint64           `json:"datagrams_up"`
	DatagramsDown uint64           `json:"datagrams_down"`
	BytesUp       uint64           `json:"bytes_up"`
	BytesDown     uint64           `json:"bytes_down"`
	Status        connlog.Status   `json:"status"` // Closed, Timeout or Shutdown
}

// Notice is the log record of a datagram that was not sent, or of an ICMP error.
type Notice struct {
	Event       string           `json:"event"` // "udp-error"
	T           float64          `json:"t"`
	Client      string           `json:"client,omitempty"`
	Session     string           `json:"session"`
	Association uint32           `json:"association"`
	Destination connlog.Endpoint `json:"destination"`
	Error       string           `json:"error"`
	Suppressed  uint64           `json:"suppressed"` // notices left out since the last one
}

func (a *association) log() {
	a.relay.mu.Lock()
	status := a.status
	a.relay.mu.Unlock()
	a.mu.Lock()
	record := Record{
		Event: "udp", Opened: jsonlog.Unix(a.opened), DurationS: jsonlog.Since(a.opened),
		Client: a.key.client.Name, Session: a.key.client.Session.String(), Association: a.key.id,
		Local: connlog.Endpoint{AddrPort: a.socket.Local()}, Destinations: len(a.destinations),
		DatagramsUp: a.up.datagrams, DatagramsDown: a.down.datagrams,
		BytesUp: a.up.bytes, BytesDown: a.down.bytes, Status: status,
	}
	a.mu.Unlock()
	a.relay.options.Log.Write(record)
}

// note logs a failure, unless there were too many recently.
func (r *Relay) note(k key, destination netip.AddrPort, err error) {
	now := time.Now()
	suppressed, ok := r.notices.Take(now)
	if !ok {
		return
	}
	r.options.Log.Write(Notice{
		Event: "udp-error", T: jsonlog.Unix(now), Client: k.client.Name, Session: k.client.Session.String(), Association: k.id,
		Destination: connlog.Endpoint{AddrPort: destination}, Error: err.Error(), Suppressed: suppressed,
	})
}
