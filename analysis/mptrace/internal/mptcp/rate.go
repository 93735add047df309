package mptcp

import "mplab/analysis/mptrace/tables"

// rateSegments is the number of segments with payload per window of the table
// throughput, as in the goodput of mptcptrace -G 250.
const rateSegments = 250

// rate is a window of segments with payload.
type rate struct {
	startNS, lastNS int64
	bytes           uint64
	segments        int32
}

// add counts a segment and reports whether the window is full.
func (r *rate) add(timeNS int64, fresh uint64) bool {
	if r.startNS == 0 {
		r.startNS = timeNS
	}
	r.lastNS = timeNS
	r.bytes += fresh
	r.segments++
	return r.segments == rateSegments
}

// rateRow writes a window and starts the next one at its end.
func (e *Engine) rateRow(c *Conn, subflow int32, level string, dir uint8, r *rate) {
	if r.segments == 0 {
		return
	}
	e.out.Throughput.Add(tables.Throughput{
		ConnectionID: c.ID, SubflowID: subflow, Level: level, Direction: tables.Directions[dir],
		StartNS: r.startNS, DurationS: seconds(r.lastNS - r.startNS), Bytes: int64(r.bytes), Packets: r.segments,
	})
	r.startNS, r.bytes, r.segments = r.lastNS, 0, 0
}
