package connlog

import "net/netip"

// Status is the way a connection ended.
type Status string

// The ways a connection ends.
const (
	Closed      Status = "closed"      // both sides ended in order
	Reset       Status = "reset"       // one side was reset, so the other was, too
	Refused     Status = "refused"     // refused by the destination or the proxy
	Unreachable Status = "unreachable" // the destination or the proxy was unreachable
	Timeout     Status = "timeout"     // no answer in time, or idle too long
	Shutdown    Status = "shutdown"    // open when the program ended
	Blocked     Status = "blocked"     // blocked by a rule
)

// Connection is the record of one application connection.
type Connection struct {
	Event     string   `json:"event"`            // "connection"
	ID        uint64   `json:"id"`               // counts from 1 in each run of the program
	Client    string   `json:"client,omitempty"` // at the proxy
	Opened    Moment   `json:"opened"`
	DurationS float64  `json:"duration_s"`
	Src       Endpoint `json:"src"` // the application
	Dst       Endpoint `json:"dst"` // the application's destination
	Transport string   `json:"transport"`
	Device    string   `json:"device"`
	Local     Endpoint `json:"local"`  // local address of the carrying connection
	Remote    Endpoint `json:"remote"` // remote address of the carrying connection
	Multipath bool     `json:"mptcp"`  // the carrying connection used MPTCP
	Fallback  bool     `json:"fallback"`
	Subflows  int      `json:"subflows"` // maximum at a time, with the initial one
	BytesUp   int64    `json:"bytes_up"`
	BytesDown int64    `json:"bytes_down"`
	UID       int64    `json:"uid"` // -1: unknown
	PID       int      `json:"pid"` // -1: unknown
	Process   string   `json:"process"`

	Domain string `json:"domain,omitempty"` // of the destination, if the application gave it or a rule needed it
	Rule   string `json:"rule,omitempty"`   // that decided
	Scheme string `json:"scheme,omitempty"` // of the stream

	Stream   uint32   `json:"stream,omitempty"`    // number in the session
	Paths    []Path   `json:"paths,omitempty"`     // the paths that carried the stream
	WaitedMS *float64 `json:"waited_ms,omitempty"` // mean time that a received byte waited for missing bytes before it

	CongestionControl string `json:"congestion_control"`
	Status            Status `json:"status"`
	Error             string `json:"error"`
	// Suppressed counts records of the client's connections without bytes that were
	// left out since the last one.
	Suppressed uint64 `json:"suppressed,omitempty"`
}

// Path counts the bytes of a stream that a path carried.
type Path struct {
	Interface string `json:"interface"`
	BytesOut  int64  `json:"bytes_out"` // without copies
	BytesIn   int64  `json:"bytes_in"`  // with copies
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

// Refusal is the record of a connection or request that was refused.
type Refusal struct {
	Event  string   `json:"event"` // "refused"
	T      float64  `json:"t"`
	Client string   `json:"client,omitempty"` // if identified
	Remote Endpoint `json:"remote"`
	Reason string   `json:"reason"`
	// Suppressed counts the refusals left out since the last one.
	Suppressed uint64 `json:"suppressed,omitempty"`
}

// Endpoint is written as "address:port", or as "" if it is invalid.
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
