package connlog

import (
	"encoding/json"
	"time"

	"mplab/internal/jsonlog"
)

// Moment is a time that the log writes in unix seconds. Its age stays right when the
// clock is set.
type Moment struct{ time.Time }

// Now returns the current time.
func Now() Moment { return Moment{time.Now()} }

// Since returns the time since the moment in seconds, rounded as in the log.
func (m Moment) Since() float64 { return jsonlog.Since(m.Time) }

// MarshalJSON implements json.Marshaler.
func (m Moment) MarshalJSON() ([]byte, error) { return json.Marshal(jsonlog.Unix(m.Time)) }

// UnmarshalJSON implements json.Unmarshaler.
func (m *Moment) UnmarshalJSON(b []byte) error {
	var unix float64
	if err := json.Unmarshal(b, &unix); err != nil {
		return err
	}
	m.Time = time.UnixMicro(int64(unix*1e6 + 0.5))
	return nil
}
