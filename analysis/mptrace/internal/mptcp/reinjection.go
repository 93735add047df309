package mptcp

import (
	"slices"

	"mplab/analysis/mptrace/internal/interval"
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/tables"
)

// Causes of reinjections. The first one that applies is used:
//
//   - closed: the original's subflow had ended before: it had a FIN or RST, or
//     REMOVE_ADDR contained its address.
//   - rto: after the original, its subflow retransmitted by timeout, at most
//     recentRTONS ago or without a sign of the receiver since; or the receiver
//     had been silent on it for a whole timeout, estimated from data to
//     DATA_ACK on that subflow (RFC 6298 §2).
//   - window: at most tightForNS ago, less than tightWindow bytes were left of
//     the data-level receive window.
//   - closed, in hindsight: the receiver never sent anything on the original's
//     subflow again, although the connection continued for longer than the
//     timeout.
const (
	causeClosed  = "closed"
	causeRTO     = "rto"
	causeWindow  = "window"
	causeUnknown = "unknown"

	recentRTONS = 1e9
	tightForNS  = 50e6 // see tightWindow

	// maxWaitingRows is the maximum number of reinjections of a connection that
	// wait for a sign of life of the original's subflow; beyond it, the cause
	// of the oldest is unknown.
	maxWaitingRows = 256
)

// waitingReinjection is a row whose cause depends on a later sign of life of
// from.
type waitingReinjection struct {
	row   tables.Reinjection
	from  *Sub
	dir   uint8 // of the data
	rtoNS int64
}

// piece is a range of data and the subflow that carried it first.
type piece struct {
	lo, hi uint64
	timeNS int64 // time of that
	sub    *Sub  // nil: forgotten
}

// again processes data that is new on its subflow but not new to the
// connection. Data that another subflow had carried is reinjected. Data that
// this subflow itself had carried, under other sequence numbers, is not.
func (e *Engine) again(h *half, seg *tcp.Segment, lo, hi uint64) {
	s, dir := h.sub, h.dir
	if s.Conn.made == 1 {
		if e.listening {
			e.tellData(h, seg, lo, hi, s)
		}
		return
	}
	e.pieces = s.Conn.carriersOf(s, dir, lo, hi, e.pieces[:0])
	for i := range e.pieces {
		p := &e.pieces[i]
		if p.sub == nil {
			p.sub, p.timeNS = s.Conn.likelyCarrier(s, dir)
		}
		if e.listening {
			e.tellData(h, seg, p.lo, p.hi, p.sub)
		}
		if p.sub != s {
			h.data.reinjected += p.hi - p.lo
			h.reinjected += p.hi - p.lo
			h.sent.remember(record{p.lo, p.hi, e.nowNS, e.nowNS})
			e.reinjection(h, p)
		}
	}
}

// cursor iterates over the data that a subflow carried.
type cursor struct {
	sub      *Sub
	segments []segment
	runs     []record
}

// carriersOf appends the first carriers of [lo, hi) to pieces. If s itself
// carried a part, it is the carrier of that part.
func (c *Conn) carriersOf(s *Sub, dir uint8, lo, hi uint64, pieces []piece) []piece {
	var buffer [8]cursor
	cursors := buffer[:0]
	for _, sub := range c.Subs {
		if h := sub.half[dir]; h != nil {
			segments, runs := h.sent.segments, h.sent.runs
			cursors = append(cursors, cursor{sub, segments[segmentAfter(segments, lo):], runs[runAfter(runs, lo):]})
		}
	}
	for at := lo; at < hi; {
		next := piece{lo: at, hi: hi}
		for i := range cursors {
			cursors[i].narrow(&next, s)
		}
		if n := len(pieces); n > 0 && pieces[n-1].sub == next.sub {
			pieces[n-1].hi = next.hi
		} else {
			pieces = append(pieces, next)
		}
		at = next.hi
	}
	return pieces
}

// narrow ends p where the cursor's information about its first byte changes. It
// sets the cursor's subflow as the carrier if it carried p before all others,
// or if it is s.
func (c *cursor) narrow(p *piece, s *Sub) {
	for len(c.segments) > 0 && c.segments[0].hi <= p.lo {
		c.segments = c.segments[1:]
	}
	if len(c.segments) > 0 {
		first := &c.segments[0]
		c.offer(p, s, first.lo, first.hi, first.timeNS)
	}
	for len(c.runs) > 0 && c.runs[0].hi <= p.lo {
		c.runs = c.runs[1:]
	}
	if len(c.runs) > 0 {
		first := &c.runs[0]
		c.offer(p, s, first.lo, first.hi, first.at(max(p.lo, first.lo)))
	}
}

// offer processes the next range that the cursor's subflow carried.
func (c *cursor) offer(p *piece, s *Sub, lo, hi uint64, timeNS int64) {
	if lo > p.lo {
		p.hi = min(p.hi, lo)
		return
	}
	p.hi = min(p.hi, hi)
	if p.sub == nil || c.sub == s || p.sub != s && timeNS < p.timeNS {
		p.sub, p.timeNS = c.sub, timeNS
	}
}

// likelyCarrier returns the probable carrier of forgotten data: the subflow
// that forgot data most recently, and the latest possible time.
func (c *Conn) likelyCarrier(s *Sub, dir uint8) (*Sub, int64) {
	var likely *Sub
	var lostNS int64
	for _, other := range c.Subs {
		if h := other.half[dir]; other != s && (likely == nil || h != nil && h.sent.lostNS > lostNS) {
			likely = other
			if h != nil {
				lostNS = h.sent.lostNS
			}
		}
	}
	if likely == nil { // its rows are written and it is gone
		return &c.first, c.startNS
	}
	return likely, max(lostNS, likely.firstNewNS)
}

// reinjection writes the row of a reinjected range, or keeps it until its cause
// is known.
func (e *Engine) reinjection(h *half, p *piece) {
	if e.out.Reinjections == nil {
		return
	}
	s, d, dir := h.sub, h.data, h.dir
	cause := e.cause(d, dir, p)
	row := tables.Reinjection{
		ConnectionID: s.Conn.ID, Direction: tables.Directions[dir], TimeNS: e.nowNS,
		Offset: d.row(p.lo), Bytes: int64(p.hi - p.lo), FromSubflow: p.sub.ID, ToSubflow: s.ID,
		SinceOriginalMS: float64(e.nowNS-p.timeNS) / 1e6, Cause: cause, Acked: p.hi <= d.acked,
	}
	if cause != causeUnknown {
		e.out.Reinjections.Add(row)
		return
	}
	m := s.Conn.multi
	if len(m.waitingRows) == maxWaitingRows {
		e.out.Reinjections.Add(m.waitingRows[0].row)
		m.waitingRows = slices.Delete(m.waitingRows, 0, 1)
	}
	m.waitingRows = append(m.waitingRows, waitingReinjection{row, p.sub, dir, p.sub.rto(dir)})
	p.sub.watch |= watchSuspect
}

func (e *Engine) cause(d *direction, dir uint8, p *piece) string {
	s := p.sub
	if s.over() {
		return causeClosed
	}
	heard := s.side[1-dir].heardNS
	if h := s.half[dir]; h != nil && h.rtoNS != 0 && h.rtoNS >= p.timeNS && (e.nowNS-h.rtoNS <= recentRTONS || heard < h.rtoNS) {
		return causeRTO
	}
	if e.nowNS-max(heard, p.timeNS) >= s.rto(dir) {
		return causeRTO
	}
	if d.tightNS != 0 && e.nowNS-d.tightNS <= tightForNS {
		return causeWindow
	}
	return causeUnknown
}

func (s *Sub) rto(dir uint8) int64 {
	if s.half[dir] == nil {
		return firstRTONS
	}
	return s.half[dir].rto()
}

// heard writes the reinjections that waited for a sign of life of side dir.
func (e *Engine) heard(s *Sub, dir uint8) {
	m := s.Conn.multi
	left := false
	m.waitingRows = slices.DeleteFunc(m.waitingRows, func(w waitingReinjection) bool {
		if w.from != s {
			return false
		}
		if w.dir == dir {
			left = true
			return false
		}
		e.out.Reinjections.Add(w.row)
		return true
	})
	if !left {
		s.watch &^= watchSuspect
	}
}

// settleSub writes the reinjections that still wait for a subflow at its end.
func (e *Engine) settleSub(c *Conn, s *Sub) {
	if c.multi == nil || s.watch&watchSuspect == 0 {
		return
	}
	c.multi.waitingRows = slices.DeleteFunc(c.multi.waitingRows, func(w waitingReinjection) bool {
		if w.from != s {
			return false
		}
		if c.lastNS-w.row.TimeNS > w.rtoNS {
			w.row.Cause = causeClosed
		}
		e.out.Reinjections.Add(w.row)
		return true
	})
}

func span(lo, hi uint64) interval.Span { return interval.Span{Lo: lo, Hi: hi} }
