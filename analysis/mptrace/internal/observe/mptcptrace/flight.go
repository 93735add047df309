package mptcptrace

import (
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
)

// flight is the data of a subflow in flight, by TCP sequence number.
type flight struct {
	sent, acked uint64
	known       bool
}

func (f *flight) size() uint64 {
	if f.acked >= f.sent {
		return 0
	}
	return f.sent - f.acked
}

func (f *flight) send(lo, hi uint64) {
	if !f.known {
		f.known, f.acked, f.sent = true, lo, hi
	}
	f.sent = max(f.sent, hi)
}

// ack processes an acknowledgement number from the wire, which can cover a FIN.
func (f *flight) ack(number uint32) {
	if ahead := number - uint32(f.acked); f.known && ahead < 1<<31 {
		f.acked = min(f.acked+uint64(ahead), f.sent)
	}
}

// Series of the file flight.
const (
	seriesWindow = 1 + iota
	seriesMPTCP
	seriesTCP
)

// flights processes a segment, after its data and acknowledgement, and writes
// the flights that it changed.
func (c *connection) flights(sub, dir int, seg *tcp.Segment) {
	s := c.subs[sub]
	if seg.Lo < seg.Hi {
		s.flight[dir].send(seg.Lo, seg.Hi)
	}
	if seg.Packet.Flags&packet.ACK != 0 {
		s.flight[1-dir].ack(seg.Packet.Ack)
	}
	timeNS := seg.Packet.TimeNS
	for dir, w := range c.ways {
		if !w.sent && !w.hasAck {
			continue
		}
		if w.hasAck {
			w.dot(w.flight, timeNS, w.edge-min(w.edge, w.acked), seriesWindow)
		}
		if size, ok := w.unacked.Flight(); ok {
			w.dot(w.flight, timeNS, size, seriesMPTCP)
		}
		w.dot(w.flight, timeNS, c.perFlow(w, dir, timeNS), seriesTCP)
		w.sent, w.hasAck = false, false
	}
}

// perFlow writes the flights of all subflows as stacked lines and returns their
// sum.
func (c *connection) perFlow(w *way, dir int, timeNS int64) uint64 {
	var sum uint64
	for i, s := range c.subs {
		if size := s.flight[dir].size(); size > 0 {
			w.vertical(w.perFlow, timeNS, sum, i+1, sum+size, -1)
			sum += size
		}
	}
	return sum
}
