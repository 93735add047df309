package tcp

import "mplab/analysis/mptrace/packet"

// An RST ends a flow only if its receiver accepts it (RFC 9293 §3.10.7, RFC
// 5961 §3.2). The capture does not show the receiver's state, so the reset of a
// flow that continues is undone.

// weight is the receiver's reaction to an RST.
type weight uint8

const (
	ignored  weight = iota // the receiver drops it: the flow does not change
	doubtful               // in the window but not the next number: only older systems end the flow
	accepted
)

// weigh judges an RST by the acknowledgements and the window of its receiver.
// Without information, the RST counts as accepted.
func (f *Flow) weigh(dir uint8, p *packet.Packet) weight {
	from, to := &f.half[dir], &f.half[1-dir]
	if to.opens() > 0 && from.syns == 0 && !f.plain(dir) && !f.plain(1-dir) { // SYN-SENT
		if p.Flags&packet.ACK == 0 || p.Ack-to.isn-1 >= answerRange {
			return ignored
		}
		return accepted
	}
	low, edge, window := uint64(0), uint64(0), uint64(1<<16)
	if f.streams == nil {
		if !from.synSeen {
			return accepted
		}
		low = firstTurn + uint64(from.isn) + 1
		edge = low
	} else {
		s := &f.streams[dir]
		if !s.started && !s.ackKnown {
			return accepted
		}
		low, edge = s.bounds()
		window = f.announced(1 - dir)
	}
	switch seq := next(edge, p.Seq); {
	case seq < low:
		return ignored
	case seq <= edge:
		return accepted
	case seq <= edge+window:
		return doubtful
	}
	return ignored
}

// bounds returns the lowest and the highest number that the receiver of a
// direction may expect next. After a FIN, some systems send the RST with the
// number of the FIN.
func (s *stream) bounds() (low, edge uint64) {
	low, edge = s.low, s.edge
	if s.ackKnown {
		low, edge = s.acked, max(s.acked, s.edge)
	}
	if !s.started {
		edge = s.acked
	}
	if s.hasFIN {
		low, edge = min(low, s.fin), max(edge, s.fin+1)
	}
	return low, edge
}

// announced returns the last receive window of a side in bytes, or its maximum
// if the scale is unknown.
func (f *Flow) announced(dir uint8) uint64 {
	const maxShift = 14 // RFC 7323 §2.3
	s := &f.streams[dir]
	switch {
	case s.windows == 0 && s.half.synSeen: // the window in a SYN is not scaled
		return 1 << 16
	case s.windows == 0:
		return 1 << (16 + maxShift)
	case !f.scaled():
		return uint64(s.window) << maxShift
	}
	return uint64(s.window) << s.shift
}

// takeReset processes an RST.
func (t *Tracker) takeReset(f *Flow, p *packet.Packet, seg *Segment) {
	w := f.weigh(seg.Dir, p)
	if w == ignored {
		seg.Ignored = true
		return
	}
	f.settled = f.settled || w == accepted
	if f.reset || (f.fins[Up] && f.fins[Down]) {
		return
	}
	f.reset, f.resetBy = true, seg.Dir
	if f.streams != nil {
		s := &f.streams[seg.Dir]
		s.resetNS, s.resetEdge = p.TimeNS, s.edge
	}
	t.move(f, closed, p.TimeNS)
}

// goesOn processes a new acknowledgement after an RST. It undoes the reset if
// the sender of the RST acknowledges new data more than a round trip later, or
// if data that it sent after the RST is acknowledged.
func (t *Tracker) goesOn(f *Flow, p *packet.Packet, seg *Segment) {
	by := &f.streams[f.resetBy]
	q := &f.streams[1-seg.Dir] // the data that is acknowledged
	if uint32(q.acked) != p.Ack {
		return // damage
	}
	if seg.Dir == f.resetBy {
		if p.TimeNS-by.resetNS > f.leastRTT() {
			t.unreset(f, p, seg)
		}
	} else if q.acked > by.resetEdge && q.edge > by.resetEdge {
		t.unreset(f, p, seg)
	}
}

func (t *Tracker) unreset(f *Flow, p *packet.Packet, seg *Segment) {
	f.reset, f.settled, seg.Resumed = false, false, true
	if !(f.fins[Up] && f.fins[Down]) {
		t.move(f, active, p.TimeNS)
	}
}

// over reports whether no packet of a closed flow is expected any more: an RST
// was accepted, or both FINs are acknowledged.
func (f *Flow) over() bool {
	return f.settled || f.streams != nil && f.streams[Up].finished() && f.streams[Down].finished()
}

func (s *stream) finished() bool { return s.hasFIN && s.ackKnown && s.acked > s.fin }

// continues reports whether the numbers of a packet are close to the last ones
// of the flow. Then it is no new connection, even after an idle time or a clock
// change.
func (f *Flow) continues(p *packet.Packet, dir uint8) bool {
	if p.Flags&packet.SYN != 0 || f.streams == nil {
		return false
	}
	s, q := &f.streams[dir], &f.streams[1-dir]
	known := false
	near := func(s *stream, number uint32) bool {
		if !s.started && !s.ackKnown {
			return true
		}
		known = true
		distance := int64(int32(number - uint32(max(s.edge, s.acked))))
		return max(distance, -distance) <= maxJump
	}
	return near(s, p.Seq) && (p.Flags&packet.ACK == 0 || near(q, p.Ack)) && known
}
