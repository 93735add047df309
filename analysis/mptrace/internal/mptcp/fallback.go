package mptcp

import (
	"mplab/analysis/mptrace/internal/interval"
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
)

// muteSegments is the number of segments without DSS after which a side is
// checked for a fallback. For fewer segments, the check runs at the end of the
// connection.
const muteSegments = 16

// fall records that a connection continues as plain TCP. From now on, bytes
// without a mapping are placed by TCP sequence number (RFC 8684 §3.7).
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

// adopt places the unmapped bytes of a half by TCP sequence number.
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

// placeImplied places new bytes without a mapping after a fallback.
func (e *Engine) placeImplied(h *half, seg *tcp.Segment, lo, hi uint64) {
	dsn := h.implied(lo)
	if dsn > h.data.edge+maxJump {
		e.warnings.UnmappedBytes += int64(hi - lo)
		return
	}
	e.shift = lo - dsn
	e.account(h, seg, dsn, dsn+(hi-lo))
}

// implied returns the place in the data of an unmapped byte after a fallback.
// The last mapping continues; without any mapping, the data starts with the
// flow.
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

// mute counts a segment without DSS from a side that has never sent one.
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

// concludeFallback checks for a fallback at the end of a connection.
func (e *Engine) concludeFallback(c *Conn) {
	if c.MPTCP && c.noDSS() {
		e.fall(c.Subs[0], Up, noteNoDSS)
	}
}

// noDSS reports whether the first data or its acknowledgement came without DSS
// on the only subflow. Cut options and missing packets prove nothing.
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

// upgrade turns a connection into MPTCP if its SYN was not seen (or was cut)
// and a segment has an MPTCP option.
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

// early is the payload of a subflow before it is known whether it is MPTCP.
type early [2]interval.Set

// keepEarly records payload ranges until the connection is known to be MPTCP or
// not, because its SYN was not completely captured.
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
