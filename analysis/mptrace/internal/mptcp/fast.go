package mptcp

import (
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// Fast processes a segment that the fast path of package tcp has processed, if
// its connection needs nothing but the usual: a mapping that repeats or
// continues the last one, and payload that this mapping covers. ip is the
// packet, if it has captured payload. It returns false for any other segment;
// then Add must process it. Add does the same, and more, for every segment; both
// change the same state.
func (e *Engine) Fast(st *tcp.Step, ip []byte) bool {
	s, _ := st.Flow.Owner.(*Sub)
	if s == nil || s.watch != 0 || st.TimeNS >= e.wakeNS || e.interest&(Segments|Mappings|Repeats) != 0 {
		return false
	}
	c, dir := s.Conn, (st.Dir^s.turn)&1
	side, h := &s.side[dir], s.half[dir]
	if (st.Window == 0) != side.zeroWindow || st.Hi > st.Lo && !side.carried {
		return false
	}
	if c.plain {
		return e.fastPlain(s, dir, st, ip)
	}
	if h == nil || c.fallback != noNote || st.DSS == 0 || h.signals == 0 {
		return false
	}
	if st.DSS&packet.DSSMap != 0 {
		repeats := st.MapHead == h.lastHead && st.MapTail == h.lastTail
		if (!repeats || h.lastTail == 0) && !e.continues(h, st) {
			return false
		}
	}
	d, now := h.data, st.TimeNS
	if st.Hi > st.Lo {
		n := len(h.maps)
		if n == 0 || !h.maps[n-1].holds(st.Lo, st.Hi) {
			return false
		}
	}
	e.heardFast(s, dir, st)
	h.signals++
	if !d.repeats(st.DataACK, st.Window) {
		e.takeDataAck(h, st.DataACK, st.DSS&packet.DSSAck64 != 0, st.Window)
	}
	if st.Hi == st.Lo {
		return true
	}
	m := &h.maps[len(h.maps)-1]
	before := d.unique
	if idle := now - d.payloadNS; idle > d.idleNS && d.payloadNS != 0 {
		d.idleNS = idle
	}
	d.payloadNS = now
	e.counted = false
	lo := m.dsn + (st.Lo - m.lo)
	e.shift = st.Lo - lo
	seg := e.captured(c, st, ip)
	if hi := lo + (st.Hi - st.Lo); d.advances(lo, hi) {
		e.fresh(h, lo, hi)
		if e.listening {
			e.tellData(h, seg, lo, hi, nil)
		}
	} else {
		e.account(h, seg, lo, hi)
	}
	if e.rates && d.rate.add(now, d.unique-before) {
		e.rateRow(c, tables.NoSubflow, tables.LevelMPTCP, h.dir, &d.rate)
	}
	return true
}

// fastPlain is Fast for a connection without MPTCP.
func (e *Engine) fastPlain(s *Sub, dir uint8, st *tcp.Step, ip []byte) bool {
	if st.DSS != 0 || s.syn != synWhole && !s.Conn.MPTCP {
		return false
	}
	e.heardFast(s, dir, st)
	if e.listening {
		if st.Hi > st.Lo {
			e.tellPlainData(s, dir, e.captured(s.Conn, st, ip), span(st.Lo, st.Hi), s.origin(dir, st.Lo), nil)
		}
		e.tellPlainACK(s, dir, st.Ack, st.Window)
	}
	return true
}

// captured returns a segment that has nothing but the captured payload, or nil
// if it is not wanted.
func (e *Engine) captured(c *Conn, st *tcp.Step, ip []byte) *tcp.Segment {
	if !st.HasData() || e.options.Payload == nil || c.payloadAsked && c.payload == nil {
		return nil
	}
	e.fastPacket.Data, e.fastPacket.TimeNS = st.Data(ip), st.TimeNS
	e.fastSegment.Packet, e.fastSegment.Lo = &e.fastPacket, st.Lo
	return &e.fastSegment
}

// heardFast records that a side was heard.
func (e *Engine) heardFast(s *Sub, dir uint8, st *tcp.Step) {
	now, c, side := st.TimeNS, s.Conn, &s.side[dir]
	e.nowNS = now
	if now > c.lastNS {
		c.lastNS = now
	}
	side.heardNS = now
	if st.Progress() {
		s.progressNS = now
	}
	if st.Hi > st.Lo {
		if e.rates && side.rate.add(now, st.Hi-st.Lo) {
			e.rateRow(c, s.ID, tables.LevelTCP, dir, &side.rate)
		}
	}
}

// continues takes a mapping that repeats or follows the last one, and reports
// whether it does.
func (e *Engine) continues(h *half, st *tcp.Step) bool {
	n, d, wide := len(h.maps), h.data, st.DSS&packet.DSSMap64 != 0
	if n == 0 || !h.hasISN || d.short && wide || h.unmapped.Bytes() != 0 {
		return false
	}
	m := &h.maps[n-1]
	seq, size := uint32(st.MapTail>>16), uint64(uint16(st.MapTail))
	lo := st.Lo + uint64(int64(int32(h.isn+seq-uint32(st.Lo))))
	dsn := st.MapHead
	if !wide {
		dsn >>= 32
	}
	dsn = d.relative(dsn, wide)
	switch {
	case size == 0 || dsn > d.edge+maxJump:
		return false
	case lo == m.hi && dsn == m.dsn+(m.hi-m.lo):
		m.hi += size
		h.mappings++
	case m.holds(lo, lo+size):
	case lo >= m.hi:
		e.addMapping(h, st.Floor, lo, dsn, size)
	default:
		return false
	}
	h.lastHead, h.lastTail = st.MapHead, st.MapTail
	h.expect()
	return true
}
