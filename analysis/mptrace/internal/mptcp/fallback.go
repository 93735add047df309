package mptcp

import (
	"mplab/analysis/mptrace/internal/interval"
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
)

// muteSegments is after how many segments without a DSS a side is asked
// whether it knows MPTCP; what is asked earlier may be told late.
const muteSegments = 16

// fall notes that a connection goes on as plain TCP. The bytes for which there
// is no mapping have their place by TCP sequence number from now on (RFC 8684 §3.7).
func (e *Engine) fall(s *Sub, dir uint8, cause note) {
	c := s.Conn
	if c.fallback != noNote {
		return
	}
	c.fallback = cause
	e.note(s, event{timeNS: e.nowNS, kind: evFallback, dir: dir, note: cause, address: -1, addressID: -1})
	if c.plain {
		return
	}
	for _, other := range c.Subs {
		for d := range uint8(2) {
			if h := other.half[d]; h != nil {
				e.adopt(h)
			}
		}
	}
}

// adopt gives the bytes of a half that have no mapping their place by TCP
// sequence number.
func (e *Engine) adopt(h *half) {
	spans := h.unmapped.Spans()
	if len(spans) == 0 {
		return
	}
	for _, span := range spans {
		e.counted = false
		e.placeImplied(h, nil, span.Lo, span.Hi)
	}
	h.unmapped.Remove(0, spans[len(spans)-1].Hi)
}

// placeImplied gives new bytes without a mapping their place after a fallback.
func (e *Engine) placeImplied(h *half, seg *tcp.Segment, lo, hi uint64) {
	dsn := h.implied(lo)
	if dsn > h.data.edge+maxJump {
		e.warnings.UnmappedBytes += int64(hi - lo)
		return
	}
	e.shift = lo - dsn
	e.account(h, seg, dsn, dsn+(hi-lo))
}

// implied is the place in the data of a byte without mapping after a fallback:
// the last mapping goes on; without any, data begins with the flow.
func (h *half) implied(seq uint64) uint64 {
	if n := len(h.maps); n > 0 {
		m := &h.maps[n-1]
		return m.dsn + (seq - m.lo)
	}
	d, s := h.data, h.sub
	d.startAnywhere(s.Conn, h.dir)
	isn := seq - 1
	if side := &s.side[h.dir]; side.hasISN {
		isn = side.isn
	}
	at := d.origin + (seq - isn - 1)
	h.maps = append(h.maps, mapping{seq, seq + 1, at})
	return at
}

// mute counts a segment without DSS of a side that never sent one.
func (e *Engine) mute(h *half, seg *tcp.Segment) {
	p := seg.Packet
	if p.Flags&packet.ACK == 0 || p.Flags&(packet.SYN|packet.RST) != 0 || p.Quirks&packet.OptionsCut != 0 {
		return
	}
	h.mute++
	if h.mute%muteSegments == 0 && h.sub.Conn.noDSS() {
		e.fall(h.sub, h.dir, noteNoDSS)
	}
}

// concludeFallback asks at a connection's end what may have been told late before.
func (e *Engine) concludeFallback(c *Conn) {
	if c.MPTCP && c.noDSS() {
		e.fall(c.Subs[0], Up, noteNoDSS)
	}
}

// noDSS says whether the first data, or its acknowledgement, came without DSS
// on the only subflow. Cut options, and what was not captured, prove nothing.
func (c *Conn) noDSS() bool {
	if c.plain || c.orphan || c.fallback != noNote || c.made != 1 {
		return false
	}
	s := c.Subs[0]
	if !s.side[Up].carried && !s.side[Down].carried || !s.opened {
		return false
	}
	up, down := s.half[Up], s.half[Down]
	silent := func(h *half) bool { return h != nil && h.mute > 0 && h.signals == 0 }
	return silent(down) || s.side[Up].carried && silent(up)
}

// upgrade makes a connection MPTCP whose SYN was not seen (or was cut) once
// its segments carry what plain TCP never has.
func (e *Engine) upgrade(s *Sub, seg *tcp.Segment) bool {
	c, has := s.Conn, seg.Packet.Has
	if c.MPTCP || s.syn == synWhole || has&packet.HasMPTCP == 0 {
		return false
	}
	e.becomeMPTCP(c, -1)
	c.orphan = has&packet.HasCapable == 0
	if has&packet.HasJoin != 0 {
		s.Additional, s.joined = true, e.spare.joins.get()
	}
	if s.early != nil {
		for dir, seen := range s.early {
			if seen.Bytes() > 0 {
				e.newHalf(s, uint8(dir)).unmapped = seen
			}
		}
		s.early = nil
	}
	return true
}

// early is the payload of a subflow that was seen before it was known to be one.
type early [2]interval.Set

// keepEarly keeps where payload was, until the connection is known to be MPTCP
// or not: its SYN has not been seen whole.
func (e *Engine) keepEarly(s *Sub, dir uint8, seg *tcp.Segment) {
	if seg.Fresh == tcp.None {
		return
	}
	if s.early == nil {
		s.early = new(early)
	}
	if seg.Fresh == tcp.All {
		s.early[dir].Add(seg.Lo, seg.Hi)
	}
	for _, gap := range seg.Gaps {
		s.early[dir].Add(gap.Lo, gap.Hi)
	}
}
