package connlog

// Clients is the record of the proxy's clients as they were read, or could not be.
type Clients struct {
	Event   string   `json:"event"` // "clients"
	T       float64  `json:"t"`
	File    string   `json:"file"`    // where they are read from
	Clients int      `json:"clients"` // that are known now
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
	Changed []string `json:"changed,omitempty"` // have another secret
	Error   string   `json:"error,omitempty"`   // nothing was changed
}

// Schemes is the proxy's record of a table of schemes that an agent has sent.
type Schemes struct {
	Event      string  `json:"event"` // "schemes"
	T          float64 `json:"t"`
	Session    string  `json:"session"`
	Client     string  `json:"client,omitempty"`
	Generation uint32  `json:"generation"`           // of the table that is in force now
	Error      string  `json:"error,omitempty"`      // of the one that was sent: it is not in force, or the agent was not told
	Suppressed uint64  `json:"suppressed,omitempty"` // such records of the client that were left out since the last one
}
