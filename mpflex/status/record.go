package status

import (
	"time"

	"mplab/internal/jsonlog"
)

// Record is a session in the log.
type Record struct {
	Event string  `json:"event"` // "status"
	T     float64 `json:"t"`     // unix seconds
	Final bool    `json:"final"` // the session is over: no other record of it follows
	Session
}

// traffic is what changes as long as a session carries something.
type traffic struct{ out, in, datagramsOut, datagramsIn int64 }

// Log writes a record of a session every so often, as long as there was traffic
// since the last one, and one when it is over. It returns then.
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
