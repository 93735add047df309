package connlog

// Association is the agent's record of a UDP association of a SOCKS client.
type Association struct {
	Event         string   `json:"event"` // "udp"
	Opened        Moment   `json:"opened"`
	DurationS     float64  `json:"duration_s"`
	Src           Endpoint `json:"src"`         // the client's address of its TCP connection
	Association   uint32   `json:"association"` // its number in the session, as in the proxy's log
	DatagramsUp   uint64   `json:"datagrams_up"`
	DatagramsDown uint64   `json:"datagrams_down"`
	BytesUp       uint64   `json:"bytes_up"`
	BytesDown     uint64   `json:"bytes_down"`
	Dropped       uint64   `json:"dropped"` // in both directions: no path, no room, unknown host name
	Blocked       uint64   `json:"blocked"` // by a rule of the policy
	Direct        uint64   `json:"direct"`  // sent past the proxy by a rule
	UID           int64    `json:"uid"`     // -1: unknown
	PID           int      `json:"pid"`     // -1: unknown
	Process       string   `json:"process"`
	Status        Status   `json:"status"` // Closed, Timeout or Shutdown

	Rules []Decided `json:"rules,omitempty"` // the rules that decided its datagrams
}

// Decided is a rule that decided datagrams. Scheme is its scheme, or block, or direct.
type Decided struct {
	Rule      string `json:"rule"`
	Scheme    string `json:"scheme"`
	Datagrams uint64 `json:"datagrams"`
}
