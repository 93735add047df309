package mptcp

import (
	"encoding/binary"

	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// Fast processes a segment that the fast path of package tcp has processed, if
// its connection needs nothing but the usual: a mapping that repeats or
// continues the last one, and payload that this mapping covers. ip is the
// packet. It returns false for any other segment; then Add must process it. Add
// does the same, and more, for every segment; both change the same state.
func (e *Engine) Fast(st *tcp.Step, ip []byte) bool {
	s, _ := st.Flow.Owner.(*Sub)
	if s == nil || s.watch != 0 || st.TimeNS >= e.wakeNS || e.interest&(Segments|Mappings|Repeats) != 0 {
		return false
	}
	c, dir := s.Conn, (st.Dir^s.turn)&1
	side, h := &s.side[dir], s.half[dir]
	if (st.Window == 0) != side.zeroWindow || h == nil || c.plain || c.fallback != noNote || st.DSS == 0 || h.signals == 0 {
		return false
	}
	if st.HasData && e.options.Payload != nil && (!c.payloadAsked || c.payload != nil) {
		return false
	}
	if st.DSS&packet.DSSMap != 0 {
		raw := (*[14]byte)(ip[64:78])
		repeats := binary.LittleEndian.Uint64(raw[0:8]) == h.lastDSN && binary.LittleEndian.Uint64(raw[6:14]) == h.lastRest
		if (!repeats || h.lastRest == 0) && !h.continues(st, raw) {
			return false
		}
	}
	d, now := h.data, st.TimeNS
	if st.Hi > st.Lo {
		n := len(h.maps)
		if n == 0 || !side.carried || !h.maps[n-1].holds(st.Lo, st.Hi) {
			return false
		}
	}
	e.nowNS = now
	if now > c.lastNS {
		c.lastNS = now
	}
	side.heardNS, s.progressNS = now, now
	h.signals++
	if st.Hi > st.Lo {
		if r := side.rate; r != nil && r.add(now, st.Hi-st.Lo) {
			e.rateRow(c, s.ID, tables.LevelTCP, dir, r)
		}
	}
	if ack := binary.BigEndian.Uint64(ip[56:64]); !d.repeats(ack, st.Window) {
		e.takeDataAck(h, ack, true, st.Window)
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
	if hi := lo + (st.Hi - st.Lo); d.advances(lo, hi) {
		e.fresh(h, lo, hi)
		if e.listening {
			e.tellData(h, nil, lo, hi, nil)
		}
	} else {
		e.account(h, nil, lo, hi)
	}
	if e.rates && d.rate.add(now, d.unique-before) {
		e.rateRow(c, tables.NoSubflow, tables.LevelMPTCP, h.dir, &d.rate)
	}
	return true
}

// continues takes a mapping that continues the last one, and reports whether it
// does. raw is the mapping in the option: DSN, subflow sequence number, length.
func (h *half) continues(st *tcp.Step, raw *[14]byte) bool {
	n, d := len(h.maps), h.data
	if n == 0 || !h.hasISN || d.short || h.unmapped.Bytes() != 0 {
		return false
	}
	m := &h.maps[n-1]
	lo := st.Lo + uint64(int64(int32(h.isn+binary.BigEndian.Uint32(raw[8:12])-uint32(st.Lo))))
	dsn, size := binary.BigEndian.Uint64(raw[0:8])-d.base, uint64(binary.BigEndian.Uint16(raw[12:14]))
	switch {
	case size == 0:
		return false
	case lo == m.hi && dsn == m.dsn+(m.hi-m.lo) && dsn <= d.edge+maxJump:
		m.hi += size
		h.mappings++
	case !m.holds(lo, lo+size):
		return false
	}
	h.lastDSN, h.lastRest = binary.LittleEndian.Uint64(raw[0:8]), binary.LittleEndian.Uint64(raw[6:14])
	h.expect()
	return true
}
