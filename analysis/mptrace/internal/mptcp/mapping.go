package mptcp

import (
	"slices"
	"sort"

	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
)

const (
	// maxMappings bounds the memory of one direction of a subflow. Beyond it,
	// the oldest mappings are forgotten.
	maxMappings = 1 << 16
	// fewMappings is the number of mappings below which no search for obsolete
	// ones is made.
	fewMappings = 64
	// maxJump is the maximum distance of a mapping from the highest data seen
	// so far.
	maxJump = 1 << 36
	// unknownStart leaves room below the first DSN seen if the initial DSN is
	// unknown.
	unknownStart = 1 << 40
	// nowhere is a value that no unwrapped sequence number has.
	nowhere = 1
	// infinite is the size of an infinite mapping.
	infinite = 1 << 62
)

// mapping maps [lo, hi) of a subflow's unwrapped sequence numbers to the
// connection's data: byte lo is byte dsn, relative to direction.base.
type mapping struct{ lo, hi, dsn uint64 }

func (m *mapping) holds(lo, hi uint64) bool { return m.lo <= lo && hi <= m.hi }

// goesOn handles the usual mapping: it covers exactly the payload of its
// segment and continues the last mapping. It returns false for any other
// mapping.
func (h *half) goesOn(seg *tcp.Segment) bool {
	p := seg.Packet
	if seg.Lo != h.nextSeq || p.DSN != h.nextDSN || p.Seq-p.SSN != h.isn || uint32(p.DSSLen) != p.Payload ||
		p.DSS&(packet.DSSMap64|packet.DSSFin|packet.DSSChecksum) != packet.DSSMap64 || p.Payload == 0 {
		return false
	}
	h.maps[len(h.maps)-1].hi = seg.Hi
	h.nextSeq, h.nextDSN = seg.Hi, p.DSN+uint64(p.Payload)
	h.mappings++
	return true
}

// expect stores the end of the last mapping for goesOn.
func (h *half) expect() {
	h.nextSeq = nowhere
	if n := len(h.maps); n > 0 && h.hasISN && !h.data.short && h.unmapped.Bytes() == 0 {
		m := &h.maps[n-1]
		h.nextSeq, h.nextDSN = m.hi, h.data.base+m.dsn+(m.hi-m.lo)
	}
}

// takeMapping processes the mapping of a data sequence signal (RFC 8684
// §3.3.1).
func (e *Engine) takeMapping(h *half, seg *tcp.Segment) {
	p, s, d := seg.Packet, h.sub, h.data
	if !d.started {
		d.start(s.Conn, h.dir, p.DSN-h.passed(p.SSN), p.DSS&packet.DSSMap64 != 0)
	}
	dsn, size := d.relative(p.DSN, p.DSS&packet.DSSMap64 != 0), uint64(p.DSSLen)
	if size == 0 || p.DSS&(packet.DSSFin|packet.DSSChecksum) != 0 {
		if size = e.oddMapping(h, p, dsn); size == 0 {
			return
		}
	}
	if !h.hasISN && !h.findISN(seg, size) {
		return
	}
	near := seg.Lo
	lo := near + uint64(int64(int32(h.isn+p.SSN-uint32(near))))
	if n := len(h.maps); n > 0 {
		m := &h.maps[n-1]
		if lo == m.hi && dsn == m.dsn+(m.hi-m.lo) && size != infinite && dsn <= d.edge+maxJump { // continues mapping m
			m.hi += size
			h.mappings++
			e.mapped(h, lo, lo+size, dsn)
			return
		}
		if m.holds(lo, lo+size) { // repeats a known mapping
			e.tellMapping(h, dsn, size)
			return
		}
	}
	e.addMapping(h, seg.Floor, lo, dsn, size)
}

// passed returns the number of data bytes before the first mapping seen. If the
// MP_CAPABLE with the key was reordered or lost, the subflow sequence number
// yields it: before the first DATA_ACK, the initial subflow carries all data.
func (h *half) passed(ssn uint32) uint64 {
	const mostPassed = 1 << 20
	if s := h.sub; s.Additional || !s.side[h.dir].hasISN || ssn == 0 || ssn > mostPassed {
		return 0
	}
	return uint64(ssn - 1)
}

// oddMapping handles a mapping that is infinite or has a DATA_FIN or a
// checksum. It returns the number of bytes that it maps.
func (e *Engine) oddMapping(h *half, p *packet.Packet, dsn uint64) uint64 {
	s, d, size := h.sub, h.data, uint64(p.DSSLen)
	if p.DSS&packet.DSSChecksum != 0 {
		s.Conn.checksum = true
	}
	if p.DSS&packet.DSSFin != 0 { // DATA_FIN occupies the last number and has no payload
		if size > 0 {
			size--
		}
		if d.finNS == 0 {
			d.finNS, d.finAt = p.TimeNS, dsn+size
			e.happened(s, h.dir, evDataFIN)
		}
		return size
	}
	if size > 0 {
		return size
	}
	if s.Conn.fallback == noNote || s.Conn.fallback == noteFail {
		e.happened(s, h.dir, evInfinite)
	}
	e.fall(s, h.dir, noteInfinite)
	return infinite
}

// findISN sets the initial sequence number of a half. Without its SYN, it
// derives the number from a mapping of exactly this segment; otherwise it
// returns false.
func (h *half) findISN(seg *tcp.Segment, size uint64) bool {
	p, side := seg.Packet, &h.sub.side[h.dir]
	if !side.hasISN {
		if uint64(p.Payload) != size || seg.Lo == 0 {
			return false
		}
		side.isn, side.hasISN = seg.Lo-uint64(p.SSN), true
	}
	h.isn, h.hasISN = uint32(side.isn), true
	return true
}

// capableMapping adds the mapping of an MP_CAPABLE with data: the first data of
// the connection (RFC 8684 §3.1).
func (e *Engine) capableMapping(s *Sub, dir uint8, seg *tcp.Segment, size uint64) {
	h := s.half[dir]
	if h == nil {
		h = e.newHalf(s, dir)
	}
	side := &s.side[dir]
	if !side.hasISN {
		return
	}
	d := h.data
	d.startAnywhere(s.Conn, dir)
	h.isn, h.hasISN = uint32(side.isn), true
	h.signals++
	lo := seg.Lo + uint64(int64(int32(h.isn+1-uint32(seg.Lo))))
	e.addMapping(h, seg.Floor, lo, d.firstByte(s.Conn, dir), size)
	h.expect()
}

// addMapping adds a mapping of size bytes from the unwrapped sequence number lo
// to dsn. Earlier mappings of the same bytes take precedence. All bytes below
// floor have been seen.
func (e *Engine) addMapping(h *half, floor, lo, dsn, size uint64) {
	if dsn > h.data.edge+maxJump {
		e.warnings.MappingOutOfRange++
		return
	}
	h.lastTail = 0
	if len(h.maps) > fewMappings {
		h.forget(floor)
	}
	n := len(h.maps)
	if n == 0 || h.maps[n-1].hi <= lo {
		h.maps = append(h.maps, mapping{lo, lo + size, dsn})
		h.countNew(lo + size)
		e.mapped(h, lo, lo+size, dsn)
		return
	}
	e.tellMapping(h, dsn, size)
	if e.insertMapping(h, lo, dsn, size) {
		h.countNew(lo + size)
	}
}

// countNew counts a mapping that ends at hi, unless it is the retransmission of
// a forgotten one.
func (h *half) countNew(hi uint64) {
	if hi > h.forgotten {
		h.mappings++
	}
}

// insertMapping adds the parts of a mapping that earlier ones do not cover, and
// reports whether there were any.
func (e *Engine) insertMapping(h *half, lo, dsn, size uint64) bool {
	added := false
	at := mappingAfter(h.maps, lo)
	for hi := lo + size; lo < hi; at++ {
		end := hi
		if at < len(h.maps) {
			next := h.maps[at]
			end = min(hi, max(lo, next.lo))
			if end == lo {
				skip := min(hi, next.hi) - lo
				lo, dsn = lo+skip, dsn+skip
				continue
			}
		}
		h.maps = slices.Insert(h.maps, at, mapping{lo, end, dsn})
		e.mapLate(h, lo, end, dsn)
		added = true
		dsn += end - lo
		lo = end
	}
	return added
}

// mapped reports a new mapping and places the bytes that arrived before it.
func (e *Engine) mapped(h *half, lo, hi, dsn uint64) {
	if e.interest&Mappings != 0 {
		e.tellMapping(h, dsn, hi-lo)
	}
	if h.unmapped.Bytes() != 0 {
		e.mapLate(h, lo, hi, dsn)
	}
}

// mapLate places the bytes of a mapping that arrived before it.
func (e *Engine) mapLate(h *half, lo, hi, dsn uint64) {
	if h.unmapped.Bytes() == 0 {
		return
	}
	e.counted = false
	for _, late := range h.unmapped.In(lo, hi, nil) {
		h.unmapped.Remove(late.Lo, late.Hi)
		at := dsn + (late.Lo - lo)
		e.shift = late.Lo - at
		e.account(h, nil, at, at+late.Len())
	}
}

// place maps new bytes of a subflow to the data and accounts them.
func (e *Engine) place(h *half, seg *tcp.Segment, lo, hi uint64) {
	for at := mappingAfter(h.maps, lo); at < len(h.maps) && h.maps[at].lo < hi; at++ {
		m := h.maps[at]
		if m.lo > lo {
			e.unplaced(h, seg, lo, m.lo)
			lo = m.lo
		}
		end := min(hi, m.hi)
		dsn := m.dsn + (lo - m.lo)
		e.shift = lo - dsn
		e.account(h, seg, dsn, dsn+(end-lo))
		lo = end
	}
	if lo < hi {
		e.unplaced(h, seg, lo, hi)
	}
}

// unplaced handles new bytes without a mapping.
func (e *Engine) unplaced(h *half, seg *tcp.Segment, lo, hi uint64) {
	if h.sub.Conn.fallback == noNote {
		h.unmapped.Add(lo, hi)
		h.nextSeq = nowhere
		return
	}
	e.placeImplied(h, seg, lo, hi)
}

// forget drops mappings that are entirely below floor, whose bytes have all
// been seen.
func (h *half) forget(floor uint64) {
	n := 0
	for n < len(h.maps)-1 && h.maps[n].hi <= floor {
		n++
	}
	if n == 0 && len(h.maps) >= maxMappings {
		n = maxMappings / 8
	}
	if n > 0 {
		h.forgotten = h.maps[n-1].hi
		h.maps = slices.Delete(h.maps, 0, n)
	}
}

// mappingAfter returns the index of the first mapping that ends after lo. It
// checks the last mapping first, because most queries concern it.
func mappingAfter(maps []mapping, lo uint64) int {
	n := len(maps)
	if n > 0 && maps[n-1].lo <= lo {
		if maps[n-1].hi > lo {
			return n - 1
		}
		return n
	}
	return sort.Search(n, func(i int) bool { return maps[i].hi > lo })
}
