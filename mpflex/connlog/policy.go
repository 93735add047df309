package connlog

// Policy is the record of a reload of the rule file, or of a failure.
type Policy struct {
	Event string  `json:"event"` // "policy"
	T     float64 `json:"t"`
	File  string  `json:"file"`
	Rules int     `json:"rules"`           // current number, without the default
	Error string  `json:"error,omitempty"` // of the file, which is then not used; or of a source of conditions
}
