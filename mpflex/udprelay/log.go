package udprelay

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"mplab/mpflex/connlog"
)

// Counters count datagrams from the start of the relay; up is from clients.
type Counters struct {
	Up, Down           atomic.Uint64 // sent on, and brought back
	UpBytes, DownBytes atomic.Uint64 // of their payload
	Denied             atomic.Uint64 // not sent: the destination is not allowed
	OverLimit          atomic.Uint64 // not sent: no more sockets
	Dropped            atomic.Uint64 // not sent: the socket's buffer was full
	Failed             atomic.Uint64 // not sent: an error of the socket, or the relay was closed
	Unsolicited        atomic.Uint64 // not brought back: from where nothing was sent to
	Unreachable        atomic.Uint64 // ICMP errors
}

// Record is the log record of an association.
type Record struct {
	Event         string           `json:"event"` // "udp"
	Opened        float64          `json:"opened"`
	DurationS     float64          `json:"duration_s"`
	Client        Client           `json:"client"`
	Association   uint32           `json:"association"`
	Local         connlog.Endpoint `json:"local"`
	Destinations  int              `json:"destinations"` // in the table at the end
	DatagramsUp   uint64           `json:"datagrams_up"`
	DatagramsDown uint64           `json:"datagrams_down"`
	BytesUp       uint64           `json:"bytes_up"`
	BytesDown     uint64           `json:"bytes_down"`
	Status        connlog.Status   `json:"status"` // Closed, Timeout or Shutdown
}

// Notice is the log record of a datagram that was not sent, or of an ICMP
// error.
type Notice struct {
	Event       string           `json:"event"` // "udp-error"
	T           float64          `json:"t"`
	Client      Client           `json:"client"`
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
		Event: "udp", Opened: connlog.Unix(a.opened), DurationS: connlog.Since(connlog.Unix(a.opened)),
		Client: a.key.client, Association: a.key.id,
		Local: connlog.Endpoint{AddrPort: a.socket.Local()}, Destinations: len(a.destinations),
		DatagramsUp: a.up.datagrams, DatagramsDown: a.down.datagrams,
		BytesUp: a.up.bytes, BytesDown: a.down.bytes, Status: status,
	}
	a.mu.Unlock()
	a.relay.options.Log.Write(record)
}

// note logs what went wrong, unless too much does.
func (r *Relay) note(k key, destination netip.AddrPort, err error) {
	now := time.Now()
	suppressed, ok := r.notices.take(now)
	if !ok {
		return
	}
	r.options.Log.Write(Notice{
		Event: "udp-error", T: connlog.Unix(now), Client: k.client, Association: k.id,
		Destination: connlog.Endpoint{AddrPort: destination}, Error: err.Error(), Suppressed: suppressed,
	})
}

const (
	noticeBurst = 32                     // notices at once
	noticePause = 100 * time.Millisecond // between two of them in the long run
)

// throttle is a token bucket: datagrams must not fill the disk.
type throttle struct {
	mu         sync.Mutex
	tokens     int
	filled     time.Time // when the last token came
	suppressed uint64
}

func newThrottle() throttle { return throttle{tokens: noticeBurst, filled: time.Now()} }

// take tells whether a notice may be written now, and how many were not since
// the last one that was.
func (t *throttle) take(now time.Time) (suppressed uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if came := int(now.Sub(t.filled) / noticePause); came > 0 {
		t.tokens = min(t.tokens+came, noticeBurst)
		t.filled = t.filled.Add(time.Duration(came) * noticePause)
	}
	if t.tokens == 0 {
		t.suppressed++
		return 0, false
	}
	t.tokens--
	suppressed, t.suppressed = t.suppressed, 0
	return suppressed, true
}
