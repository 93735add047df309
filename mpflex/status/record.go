package status

import (
	"time"

	"mplab/internal/jsonlog"
)

// Record is the log record of a session's status.
type Record struct {
	Event string  `json:"event"` // "status"
	T     float64 `json:"t"`     // unix seconds
	Final bool    `json:"final"` // the session is over: no further record follows
	Session
}

// traffic holds the counters that change while a session carries traffic.
type traffic struct{ out, in, datagramsOut, datagramsIn int64 }

// Log writes a record of a session at each interval with traffic, and one when the
// session is over. Then it returns.
func Log(l Live, every time.Duration, write func(record any)) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var last traffic
	for {
		final := false
		select {
		case <-l.Session.Done():
			final = true
		case <-ticker.C:
		}
		r := Record{Event: "status", T: jsonlog.Unix(time.Now()), Final: final, Session: l.row()}
		now := traffic{r.BytesOut, r.BytesIn, r.Counters.DatagramsOut, r.Counters.DatagramsIn}
		if now != last || final {
			write(r)
		}
		if last = now; final {
			return
		}
	}
}
