package mptcptrace

import (
	"fmt"

	"mplab/analysis/mptrace/internal/observe"
	"mplab/analysis/mptrace/internal/observe/spool"
)

// way writes the files of one direction's data.
type way struct {
	seq, acksize, rttAck, rttSeq, rttNum, flight, perFlow, gput, sf, reinjected *spool.File

	first   uint64 // the number before the first byte
	highest uint64 // end of the data seen
	acked   uint64 // highest acknowledgement
	ackNS   int64  // time of the last acknowledgement at or above the highest
	acks    int64
	edge    uint64 // highest right edge of the window
	edges   bool   // edge is valid

	sent, hasAck bool // the current segment had data, or an acknowledgement

	unacked observe.Unacked
	speed   goodput
	copies  copies
	line    []byte // buffer for one row
}

func newWay(dir *spool.Dir, name string, number int) *way {
	open := func(kind string) *spool.File { return dir.File(fmt.Sprintf("%s_%s_%d.csv", name, kind, number)) }
	w := &way{
		seq: open("seq"), acksize: open("acksize"), rttAck: open("rtt_ack_ts"), rttSeq: open("rtt_seq_ts"), rttNum: open("rtt_seq_num"),
		flight: open("flight"), perFlow: open("flight_per_flow"), gput: open("gput"), sf: open("sf"),
	}
	if name == "c2s" {
		w.reinjected = open("map_reinject")
	}
	return w
}

// data writes the rows of a segment, and keeps new data until it is
// acknowledged.
func (w *way) data(n note) {
	original := -1
	switch n.original {
	case -1:
		w.unacked.Add(observe.Piece{Lo: n.lo, Hi: n.hi, TimeNS: n.timeNS})
		w.copies.add(n.lo, w.reinjected != nil)
	case n.sub:
	default:
		original = n.original + 1
		w.copies.again(n)
	}
	w.highest = max(w.highest, n.hi)
	w.sent = true
	w.vertical(w.seq, n.timeNS, w.number(n.lo), n.sub+1, w.number(n.hi), original)
}

// ack writes the rows of an acknowledgement. The flight is written later, by
// flights.
func (w *way) ack(n note) {
	w.dot(w.seq, n.timeNS, w.number(n.lo), n.sub+1)
	var fresh uint64
	if n.lo > w.acked {
		fresh = n.lo - w.acked
	}
	w.dot(w.acksize, n.timeNS, fresh, n.sub+1)
	if n.lo >= w.acked {
		w.ackNS, w.acked = n.timeNS, n.lo
		w.acks++
	}
	if !w.edges || n.hi > w.edge {
		w.edges, w.edge = true, n.hi
	}
	w.hasAck = true
	for _, p := range w.unacked.Ack(n.lo) {
		rtt := float64(n.timeNS-p.TimeNS) / 1e6
		w.fraction(w.rttAck, n.timeNS, rtt, 2)
		w.fraction(w.rttSeq, p.TimeNS, rtt, 2)
		w.numbered(w.rttNum, w.number(p.Lo), rtt, 2)
	}
	if fresh > 0 || w.speed.count == 0 {
		w.goodput(n.timeNS, n.lo)
	}
}

func (w *way) close() {
	for _, f := range []*spool.File{w.seq, w.acksize, w.rttAck, w.rttSeq, w.rttNum, w.flight, w.perFlow, w.gput, w.sf, w.reinjected} {
		if f != nil {
			f.Close()
		}
	}
}
