package connlog

// Clients is the proxy's record of a reload of its clients.
type Clients struct {
	Event   string   `json:"event"` // "clients"
	T       float64  `json:"t"`
	File    string   `json:"file"`    // file or directory of the clients
	Clients int      `json:"clients"` // current number
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
	Changed []string `json:"changed,omitempty"` // with another secret
	Error   string   `json:"error,omitempty"`   // then nothing was changed
}

// Schemes is the proxy's record of a table of schemes from an agent.
type Schemes struct {
	Event      string  `json:"event"` // "schemes"
	T          float64 `json:"t"`
	Session    string  `json:"session"`
	Client     string  `json:"client,omitempty"`
	Generation uint32  `json:"generation"`           // of the current table
	Error      string  `json:"error,omitempty"`      // of the new table: it is not used, or the answer was not sent
	Suppressed uint64  `json:"suppressed,omitempty"` // records of the client that were left out since the last one
}
