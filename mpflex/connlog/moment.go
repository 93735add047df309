package connlog

import (
	"encoding/json"
	"time"

	"mplab/internal/jsonlog"
)

// Moment is a time as the log writes it, in unix seconds, which still knows how
// long ago it is when the clock has been set since.
type Moment struct{ time.Time }

// Now is this moment.
func Now() Moment { return Moment{time.Now()} }

// Since is the time since the moment as the log writes it, in seconds.
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
