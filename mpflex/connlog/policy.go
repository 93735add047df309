package connlog

// Policy is the record of a rule file that was read, or could not be.
type Policy struct {
	Event string  `json:"event"` // "policy"
	T     float64 `json:"t"`
	File  string  `json:"file"`
	Rules int     `json:"rules"`           // that are in force now, without the default
	Error string  `json:"error,omitempty"` // of the file, whose rules are not in force then; or of what is needed to judge by them
}
