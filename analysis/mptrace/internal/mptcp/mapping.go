package mptcp

import (
	"slices"

	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
)

const (
	// maxMappings bounds the memory of one direction of a subflow: beyond it
	// the oldest mappings are forgotten.
	maxMappings = 1 << 16
	// fewMappings are kept without a look at which of them are still of use.
	fewMappings = 64
	// maxJump is how far a mapping may lie ahead of all data seen so far.
	maxJump = 1 << 36
	// unknownStart leaves room below the first DSN seen when the initial DSN
	// is not known.
	unknownStart = 1 << 40
	// nowhere is no unwrapped sequence number.
	nowhere = 1
	// infinite is the size of an infinite mapping.
	infinite = 1 << 62
)

// mapping says where [lo, hi) of a subflow's unwrapped sequence numbers lies
// in the connection's data: byte lo is byte dsn, relative to direction.base.
type mapping struct{ lo, hi, dsn uint64 }

func (m *mapping) holds(lo, hi uint64) bool { return m.lo <= lo && hi <= m.hi }

// goesOn takes the mapping of a segment when it is that of exactly its payload
// and goes on where the last one ended, as most do.
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

// expect tells goesOn where the last mapping ends.
func (h *half) expect() {
	h.nextSeq = nowhere
	if n := len(h.maps); n > 0 && h.hasISN && !h.data.short && h.unmapped.Bytes() == 0 {
		m := &h.maps[n-1]
		h.nextSeq, h.nextDSN = m.hi, h.data.base+m.dsn+(m.hi-m.lo)
	}
}

// takeMapping takes the mapping of a data sequence signal, RFC 8684 §3.3.1.
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
		if lo == m.hi && dsn == m.dsn+(m.hi-m.lo) && size != infinite && dsn <= d.edge+maxJump { // goes on
			m.hi += size
			h.mappings++
			e.mapped(h, lo, lo+size, dsn)
			return
		}
		if m.holds(lo, lo+size) { // said before
			e.tellMapping(h, dsn, size)
			return
		}
	}
	e.addMapping(h, seg.Floor, lo, dsn, size)
}

// passed is how many bytes of the data lie before the first mapping seen. When
// MP_CAPABLE with the key was overtaken, or lost, the subflow sequence number
// tells it: until the data is acknowledged, the initial subflow carries all of it.
func (h *half) passed(ssn uint32) uint64 {
	const mostPassed = 1 << 20
	if s := h.sub; s.Additional || !s.side[h.dir].hasISN || ssn == 0 || ssn > mostPassed {
		return 0
	}
	return uint64(ssn - 1)
}

// oddMapping takes a mapping that is infinite, or has a DATA_FIN or a
// checksum, and returns how many bytes it maps.
func (e *Engine) oddMapping(h *half, p *packet.Packet, dsn uint64) uint64 {
	s, d, size := h.sub, h.data, uint64(p.DSSLen)
	if p.DSS&packet.DSSChecksum != 0 {
		s.Conn.checksum = true
	}
	if p.DSS&packet.DSSFin != 0 { // it takes the last number and no payload
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

// findISN gets the initial sequence number of a half; when its SYN was not
// seen, from a mapping of exactly this segment.
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

// capableMapping takes the mapping of MP_CAPABLE with data: the first data of
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

// addMapping takes a mapping of size bytes from the unwrapped sequence number
// lo to dsn. What an earlier mapping says of the same bytes stays. All below
// floor was seen.
func (e *Engine) addMapping(h *half, floor, lo, dsn, size uint64) {
	if dsn > h.data.edge+maxJump {
		e.warnings.MappingOutOfRange++
		return
	}
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

// countNew counts a mapping that ends at hi, unless it was forgotten and comes
// again with a retransmission.
func (h *half) countNew(hi uint64) {
	if hi > h.forgotten {
		h.mappings++
	}
}

// insertMapping takes the parts of a mapping that earlier ones leave, and says
// whether there were any.
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

// mapped tells of a new mapping, and gives their place to bytes that came before it.
func (e *Engine) mapped(h *half, lo, hi, dsn uint64) {
	if e.interest&Mappings != 0 {
		e.tellMapping(h, dsn, hi-lo)
	}
	if h.unmapped.Bytes() != 0 {
		e.mapLate(h, lo, hi, dsn)
	}
}

// mapLate gives their place to the bytes of a mapping that came before it.
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

// place finds the data that new bytes of a subflow are.
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

// unplaced takes new bytes without a mapping.
func (e *Engine) unplaced(h *half, seg *tcp.Segment, lo, hi uint64) {
	if h.sub.Conn.fallback == noNote {
		h.unmapped.Add(lo, hi)
		h.nextSeq = nowhere
		return
	}
	e.placeImplied(h, seg, lo, hi)
}

// forget drops mappings of which no byte can be new any more, all below floor.
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

// mappingAfter is the index of the first mapping that ends behind lo. Most
// questions are about the last one.
func mappingAfter(maps []mapping, lo uint64) int {
	n := len(maps)
	if n > 0 && maps[n-1].lo <= lo {
		if maps[n-1].hi > lo {
			return n - 1
		}
		return n
	}
	a, b := 0, n
	for a < b {
		if m := int(uint(a+b) / 2); maps[m].hi <= lo {
			a = m + 1
		} else {
			b = m
		}
	}
	return a
}
