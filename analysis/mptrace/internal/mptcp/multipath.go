package mptcp

import (
	"mplab/analysis/mptrace/internal/interval"
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// half is the MPTCP part of one direction of a subflow.
type half struct {
	sub  *Sub
	data *direction
	dir  uint8

	hasISN   bool
	isn      uint32 // initial sequence number
	mute     int32  // segments without DSS before the first DSS
	signals  int64  // DSS options, and MP_CAPABLE with data
	mappings int64  // without repetitions
	nextSeq  uint64 // end of the last mapping, on the subflow; nextDSN: in the data
	nextDSN  uint64
	lastHead uint64 // first eight bytes of the last mapping on the fast path
	lastTail uint64 // its last eight bytes; 0: there is none

	forgotten uint64    // end of the last mapping that was dropped from maps
	maps      []mapping // ascending, disjoint; those with only seen bytes may be dropped
	sent      sent

	unmapped   interval.Set // payload without a mapping so far
	reinjected uint64       // bytes that another subflow had carried before
	rtoNS      int64        // time of the latest retransmission by timeout
	srttNS     int64        // smoothed time from data to DATA_ACK; varNS: its variation (RFC 6298 §2)
	varNS      int64
}

func (e *Engine) newHalf(s *Sub, dir uint8) *half {
	m := s.Conn.multi
	if m.data == nil {
		m.data = e.spare.data.get()
	}
	h := e.spare.halves.get()
	h.sub, h.data, h.dir, h.nextSeq = s, &m.data[dir], dir, nowhere
	s.half[dir] = h
	return h
}

// multipath processes a segment of an MPTCP connection: first its data sequence
// signal, then its payload.
func (e *Engine) multipath(s *Sub, dir uint8, seg *tcp.Segment) {
	p := seg.Packet
	h := s.half[dir]
	if h == nil {
		if p.Has&packet.HasDSS == 0 && p.Payload == 0 && p.Flags&rareFlags != 0 {
			return
		}
		h = e.newHalf(s, dir)
	}
	if p.Has&packet.HasDSS != 0 {
		h.signals++
		if p.DSS&packet.DSSMap != 0 && (e.interest&Mappings != 0 || !h.goesOn(seg)) {
			e.takeMapping(h, seg)
			h.expect()
		}
		if p.DSS&packet.DSSAck != 0 && (e.interest&Repeats != 0 || !h.data.repeats(p.DataAck, seg.Window)) {
			e.takeDataAck(h, p.DataAck, p.DSS&packet.DSSAck64 != 0, seg.Window)
		}
	} else if h.signals == 0 {
		e.mute(h, seg)
	}
	if p.Payload != 0 && p.Flags&packet.RST == 0 {
		e.takePayload(h, seg)
	}
	if s.Conn.fallback != noNote {
		e.plainAck(s, dir, seg)
	}
}

// takePayload accounts the payload that is new on its subflow at data level.
func (e *Engine) takePayload(h *half, seg *tcp.Segment) {
	d, now := h.data, seg.Packet.TimeNS
	before := d.unique
	if idle := now - d.payloadNS; idle > d.idleNS && d.payloadNS != 0 {
		d.idleNS = idle
	}
	d.payloadNS = now
	e.counted = false
	if n := len(h.maps); seg.Fresh == tcp.All && n > 0 && h.maps[n-1].holds(seg.Lo, seg.Hi) {
		m := &h.maps[n-1]
		lo := m.dsn + (seg.Lo - m.lo)
		e.shift = seg.Lo - lo
		hi := lo + (seg.Hi - seg.Lo)
		if d.advances(lo, hi) {
			e.fresh(h, lo, hi)
			if e.listening {
				e.tellData(h, seg, lo, hi, nil)
			}
		} else {
			e.account(h, seg, lo, hi)
		}
	} else {
		e.takeParts(h, seg)
	}
	if seg.Cause == tcp.RTO {
		h.rtoNS = now
	}
	if e.rates && d.rate.add(now, d.unique-before) {
		e.rateRow(h.sub.Conn, tables.NoSubflow, tables.LevelMPTCP, h.dir, &d.rate)
	}
}

// takeParts accounts payload that is partly old or covered by several mappings.
func (e *Engine) takeParts(h *half, seg *tcp.Segment) {
	switch seg.Fresh {
	case tcp.All:
		e.place(h, seg, seg.Lo, seg.Hi)
		return
	case tcp.Some:
		for _, gap := range seg.Gaps {
			e.place(h, seg, gap.Lo, gap.Hi)
		}
	}
	if e.observer != nil {
		e.tellAgain(h, seg)
	}
}
