package connlog

// Association is the agent's record of a UDP association of a SOCKS client.
type Association struct {
	Event         string   `json:"event"` // "udp"
	Opened        Moment   `json:"opened"`
	DurationS     float64  `json:"duration_s"`
	Src           Endpoint `json:"src"`         // the client's end of its TCP connection
	Association   uint32   `json:"association"` // as the proxy's log has it
	DatagramsUp   uint64   `json:"datagrams_up"`
	DatagramsDown uint64   `json:"datagrams_down"`
	BytesUp       uint64   `json:"bytes_up"`
	BytesDown     uint64   `json:"bytes_down"`
	Dropped       uint64   `json:"dropped"` // of both directions: no path, no room, no such name
	Blocked       uint64   `json:"blocked"` // by a rule of the policy
	Direct        uint64   `json:"direct"`  // past the proxy, by a rule
	UID           int64    `json:"uid"`     // -1 when unknown
	PID           int      `json:"pid"`     // -1 when unknown
	Process       string   `json:"process"`
	Status        Status   `json:"status"` // Closed, Timeout or Shutdown

	Rules []Decided `json:"rules,omitempty"` // that decided over its datagrams, and how
}

// Decided is a rule that decided over datagrams: by which scheme they were
// carried, or block, or direct.
type Decided struct {
	Rule      string `json:"rule"`
	Scheme    string `json:"scheme"`
	Datagrams uint64 `json:"datagrams"`
}
