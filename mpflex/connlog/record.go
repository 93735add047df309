package connlog

import "net/netip"

// Status is how a connection ended.
type Status string

// The ends of a connection.
const (
	Closed      Status = "closed"      // both sides closed in order
	Reset       Status = "reset"       // one side was reset, so the other was too
	Refused     Status = "refused"     // the destination, or the proxy, refused
	Unreachable Status = "unreachable" // the destination, or the proxy, could not be reached
	Timeout     Status = "timeout"     // no answer in time, or idle for too long
	Shutdown    Status = "shutdown"    // open when the program ended
	Blocked     Status = "blocked"     // a rule of the policy blocks it
)

// Connection is the record of one application connection.
type Connection struct {
	Event     string   `json:"event"`            // "connection"
	ID        uint64   `json:"id"`               // counts up from 1 within one run of the program
	Client    string   `json:"client,omitempty"` // at the proxy: whose it is
	Opened    Moment   `json:"opened"`
	DurationS float64  `json:"duration_s"`
	Src       Endpoint `json:"src"` // the application
	Dst       Endpoint `json:"dst"` // where the application connected to
	Transport string   `json:"transport"`
	Device    string   `json:"device"`
	Local     Endpoint `json:"local"`  // the carrying connection, this end
	Remote    Endpoint `json:"remote"` // the carrying connection, other end
	Multipath bool     `json:"mptcp"`  // the carrying connection really was MPTCP
	Fallback  bool     `json:"fallback"`
	Subflows  int      `json:"subflows"` // most at one time, the initial one included
	BytesUp   int64    `json:"bytes_up"`
	BytesDown int64    `json:"bytes_down"`
	UID       int64    `json:"uid"` // -1 when unknown
	PID       int      `json:"pid"` // -1 when unknown
	Process   string   `json:"process"`

	Domain string `json:"domain,omitempty"` // of the destination, when it was given or had to be known
	Rule   string `json:"rule,omitempty"`   // of the policy, that decided
	Scheme string `json:"scheme,omitempty"` // by which the stream is spread over the paths

	Stream   uint32   `json:"stream,omitempty"`    // of the session
	Paths    []Path   `json:"paths,omitempty"`     // that carried the stream
	WaitedMS *float64 `json:"waited_ms,omitempty"` // how long a received byte of the stream waited for those before it, mean

	CongestionControl string `json:"congestion_control"`
	Status            Status `json:"status"`
	Error             string `json:"error"`
	// Suppressed counts the records of the client, of connections without a byte,
	// that were left out since the last one.
	Suppressed uint64 `json:"suppressed,omitempty"`
}

// Path is what one path of a session carried of a stream, in bytes.
type Path struct {
	Interface string `json:"interface"`
	BytesOut  int64  `json:"bytes_out"` // the first time
	BytesIn   int64  `json:"bytes_in"`  // copies too
	CopiesOut int64  `json:"copies_out"`
}

// Lookup is the record of one DNS lookup.
type Lookup struct {
	Event     string  `json:"event"` // "dns"
	T         float64 `json:"t"`
	Name      string  `json:"name"`
	Type      string  `json:"type"`
	RCode     string  `json:"rcode"`
	DurationS float64 `json:"duration_s"`
}

// Refusal is the record of a connection that the proxy did not accept from
// whoever made it.
type Refusal struct {
	Event  string   `json:"event"` // "refused"
	T      float64  `json:"t"`
	Client string   `json:"client,omitempty"` // who it is, where that is known
	Remote Endpoint `json:"remote"`
	Reason string   `json:"reason"`
	// Suppressed counts the refusals left out since the last one.
	Suppressed uint64 `json:"suppressed,omitempty"`
}

// Endpoint is written as "address:port", and as "" when there is none.
type Endpoint struct{ netip.AddrPort }

// MarshalText implements encoding.TextMarshaler.
func (e Endpoint) MarshalText() ([]byte, error) {
	if !e.IsValid() {
		return nil, nil
	}
	return e.AppendTo(nil), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (e *Endpoint) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		e.AddrPort = netip.AddrPort{}
		return nil
	}
	return e.AddrPort.UnmarshalText(text)
}
