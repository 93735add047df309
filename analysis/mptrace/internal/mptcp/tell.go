package mptcp

import (
	"mplab/analysis/mptrace/internal/interval"
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
)

// tellData reports data at [lo, hi) to observer and payload reader; e.shift
// must be set. It omits data below the first offset.
func (e *Engine) tellData(h *half, seg *tcp.Segment, lo, hi uint64, original *Sub) {
	s, d := h.sub, h.data
	lo = max(lo, d.origin)
	if reported := s.side[h.dir].plainReported; lo < hi && lo+e.shift < reported { // reported as plain TCP before
		lo = reported - e.shift
	}
	if lo >= hi {
		return
	}
	if e.observer != nil {
		e.observer.Data(s, int(h.dir), e.nowNS, lo-d.origin, hi-d.origin, original)
	}
	if e.options.Payload != nil && original == nil && (seg != nil || s.Conn.payloadAsked) {
		e.tellPayload(s, h.dir, seg, lo-d.origin, hi-lo, lo+e.shift)
	}
}

// tellAgain reports the TCP retransmissions in a segment: all of it except its
// gaps.
func (e *Engine) tellAgain(h *half, seg *tcp.Segment) {
	each := func(lo, hi uint64) {
		for at := mappingAfter(h.maps, lo); at < len(h.maps) && h.maps[at].lo < hi; at++ {
			m := h.maps[at]
			from, to := max(lo, m.lo), min(hi, m.hi)
			dsn := m.dsn + (from - m.lo)
			e.shift = from - dsn
			e.tellData(h, seg, dsn, dsn+(to-from), h.sub)
		}
	}
	outside(seg, each)
}

// outside calls each with the parts of a segment that are not new.
func outside(seg *tcp.Segment, each func(lo, hi uint64)) {
	at := seg.Lo
	if seg.Fresh == tcp.Some {
		for _, gap := range seg.Gaps {
			if at < gap.Lo {
				each(at, gap.Lo)
			}
			at = gap.Hi
		}
	}
	if at < seg.Hi {
		each(at, seg.Hi)
	}
}

func (e *Engine) tellMapping(h *half, dsn, size uint64) {
	origin := h.data.origin
	if e.interest&Mappings == 0 || size == infinite || dsn < origin {
		return
	}
	e.observer.Mapping(h.sub, int(h.dir), e.nowNS, dsn-origin, dsn-origin+size)
}

// tellPayload passes on the captured part of size bytes at seq, and reports the
// rest as skipped. seg is nil if the bytes came in earlier segments, which are
// gone.
func (e *Engine) tellPayload(s *Sub, dir uint8, seg *tcp.Segment, offset, size, seq uint64) {
	c := s.Conn
	var captured []byte
	if seg != nil {
		if from := seq - seg.Lo; from < uint64(len(seg.Packet.Data)) {
			captured = seg.Packet.Data[from:]
			captured = captured[:min(uint64(len(captured)), size)]
		}
	}
	if !c.payloadAsked {
		if len(captured) == 0 {
			return
		}
		c.payloadAsked = true
		c.payload = e.options.Payload(c)
	}
	if c.payload == nil {
		return
	}
	n := uint64(len(captured))
	if n > 0 {
		c.payload.Data(int(dir), offset, captured, e.nowNS, s.ID)
	}
	if n < size {
		c.payload.Skip(int(dir), offset+n, size-n, e.nowNS, s.ID)
	}
}

// tellPlain reports a segment of a connection that is counted by TCP sequence
// number.
func (e *Engine) tellPlain(s *Sub, dir uint8, seg *tcp.Segment) {
	p := seg.Packet
	if p.Payload != 0 && p.Flags&packet.RST == 0 {
		origin := s.origin(dir, seg.Lo)
		switch seg.Fresh {
		case tcp.All:
			e.tellPlainData(s, dir, seg, span(seg.Lo, seg.Hi), origin, nil)
		case tcp.Some:
			for _, gap := range seg.Gaps {
				e.tellPlainData(s, dir, seg, gap, origin, nil)
			}
			fallthrough
		default:
			outside(seg, func(lo, hi uint64) { e.tellPlainData(s, dir, seg, span(lo, hi), origin, s) })
		}
	}
	if p.Flags&(packet.SYN|packet.RST) == 0 {
		e.tellPlainACK(s, dir, seg.Ack, seg.Window)
	}
}

// tellPlainACK reports an acknowledgement; 0: its number is unknown.
func (e *Engine) tellPlainACK(s *Sub, dir uint8, ack uint64, window uint32) {
	if e.observer == nil || ack == 0 {
		return
	}
	if origin := s.origin(1-dir, ack); ack >= origin {
		e.observer.Ack(s, int(1-dir), e.nowNS, ack-origin, window)
	}
}

func (e *Engine) tellPlainData(s *Sub, dir uint8, seg *tcp.Segment, part interval.Span, origin uint64, original *Sub) {
	if part.Lo = max(part.Lo, origin); part.Lo >= part.Hi {
		return
	}
	s.side[dir].plainReported = max(s.side[dir].plainReported, part.Hi)
	if e.observer != nil {
		e.observer.Data(s, int(dir), e.nowNS, part.Lo-origin, part.Hi-origin, original)
	}
	if e.options.Payload != nil && original == nil && (seg != nil || s.Conn.payloadAsked) {
		e.tellPayload(s, dir, seg, part.Lo-origin, part.Len(), part.Lo)
	}
}

// origin returns the sequence number of offset 0 of a direction in plain TCP:
// that of the byte after the SYN, or of the first byte seen.
func (s *Sub) origin(dir uint8, first uint64) uint64 {
	side := &s.side[dir]
	if !side.hasOrigin {
		side.hasOrigin, side.origin = true, first
		if side.hasISN {
			side.origin = side.isn + 1
		}
	}
	return side.origin
}
