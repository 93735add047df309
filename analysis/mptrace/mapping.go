package mptrace

import (
	"slices"

	"mplab/analysis/mptrace/interval"
	"mplab/analysis/mptrace/packet"
)

const (
	// maxMappings bounds the memory of one direction of a subflow: beyond it
	// the oldest mappings are forgotten.
	maxMappings = 1 << 16
	// maxJump is how far a mapping may lie ahead of all data seen so far.
	maxJump = 1 << 36
	// unknownStart leaves room below the first DSN seen when the initial DSN
	// is not known.
	unknownStart = 1 << 40
)

// mapping says where [lo, hi) of a subflow's unwrapped sequence numbers lies
// in the connection's data: byte lo is byte dsn, relative to connData.base.
type mapping struct{ lo, hi, dsn uint64 }

// subflowData is the MPTCP part of one direction of a subflow.
type subflowData struct {
	signals  int64 // DSS options, and MP_CAPABLE with data
	mappings []mapping
	// unmapped is payload whose mapping has not been seen (yet).
	unmapped interval.Set
	// own is the data that this subflow carried; not kept while it is alone.
	own interval.Set
}

// connData is the data of one direction of an MPTCP connection.
type connData struct {
	started    bool
	short      bool   // only 32-bit DSNs were seen: base is a guess in its upper half
	base       uint64 // DSN of relative number 0
	edge       uint64 // the highest relative number seen
	seen       interval.Set
	reinjected uint64
}

// dss takes a data sequence signal.
func (e *Engine) dss(f *flow, p *packet.Packet, dir int) {
	c, o, h := f.conn, &p.Options.DSS, &f.half[dir]
	h.data.signals++
	if !o.HasMap {
		return
	}
	dsn := c.data[dir].expand(o, c, dir)
	size := uint64(o.Len)
	switch {
	case o.DataFIN: // it takes the last number and no payload
		c.dataFIN[dir] = true
		if size > 0 {
			size--
		}
	case size == 0: // infinite mapping, RFC 8684 §3.7
		c.fallback = true
		size = 1 << 62
	}
	if size == 0 {
		return
	}
	if !h.hasISN && !h.deduceISN(p, o.SSN, size) {
		return
	}
	start := h.isn + o.SSN
	if !h.started {
		return
	}
	e.addMapping(f, dir, h.unwrap(start), dsn, size)
}

// deduceISN finds the initial sequence number of a half whose SYN was not
// seen, from a mapping of exactly this segment.
func (h *half) deduceISN(p *packet.Packet, ssn uint32, size uint64) bool {
	if uint64(p.Payload) != size {
		return false
	}
	h.isn, h.hasISN = p.Seq-ssn, true
	if !h.started {
		h.low = h.unwrap(p.Seq)
		h.edge, h.started = h.low, true
	}
	return true
}

// expand extends the DSN of a mapping to 64 bits (RFC 8684 §3.3.1).
func (d *connData) expand(o *packet.DSS, c *conn, dir int) uint64 {
	if !d.started && c.hasKey[dir] {
		d.base, d.started = c.idsn[dir], true
	}
	if !d.started {
		d.base, d.edge, d.started, d.short = o.DSN-unknownStart, unknownStart, true, !o.DSN64
		return o.DSN
	}
	near := d.base + d.edge
	if o.DSN64 {
		if d.short { // now the upper half is known
			d.short = false
			d.base += o.DSN - (near + uint64(int64(int32(uint32(o.DSN)-uint32(near)))))
		}
		return o.DSN
	}
	return near + uint64(int64(int32(uint32(o.DSN)-uint32(near))))
}

// addMapping takes a mapping of size bytes from the unwrapped sequence number
// lo to dsn. What an earlier mapping says of the same bytes stays.
func (e *Engine) addMapping(f *flow, dir int, lo, dsn, size uint64) {
	c, h := f.conn, &f.half[dir]
	d := &c.data[dir]
	if !d.started {
		if c.hasKey[dir] {
			d.base = c.idsn[dir]
		} else {
			d.base, d.edge = dsn-unknownStart, unknownStart
		}
		d.started = true
	}
	relative := dsn - d.base
	if relative > d.edge+maxJump {
		e.warnings.MappingOutOfRange++
		return
	}
	maps := h.data.mappings
	n := len(maps)
	if n > 0 {
		last := &maps[n-1]
		switch {
		case lo >= last.lo && lo+size <= last.hi: // said before
			return
		case lo == last.hi && relative == last.dsn+(last.hi-last.lo):
			last.hi += size
			e.mapLate(f, dir, mapping{lo, lo + size, relative})
			return
		}
	}
	if n > 64 {
		h.forget()
		maps = h.data.mappings
	}
	at := mappingAt(maps, lo)
	for hi := lo + size; lo < hi; at++ {
		end := hi
		if at < len(h.data.mappings) {
			next := h.data.mappings[at]
			end = min(hi, max(lo, next.lo))
			if end == lo {
				skip := min(hi, next.hi) - lo
				lo, relative = lo+skip, relative+skip
				continue
			}
		}
		m := mapping{lo, end, relative}
		h.data.mappings = slices.Insert(h.data.mappings, at, m)
		e.mapLate(f, dir, m)
		relative += end - lo
		lo = end
	}
}

// mappingAt is the index of the first mapping that ends after lo. Most
// questions are about the last one.
func mappingAt(maps []mapping, lo uint64) int {
	n := len(maps)
	if n > 0 && maps[n-1].lo <= lo {
		if maps[n-1].hi > lo {
			return n - 1
		}
		return n
	}
	at, _ := slices.BinarySearchFunc(maps, lo, func(m mapping, lo uint64) int {
		if m.hi <= lo {
			return -1
		}
		return 1
	})
	return at
}

// forget drops mappings of which no byte can be new any more.
func (h *half) forget() {
	floor, n := h.seen.Floor(), 0
	for n < len(h.data.mappings) && h.data.mappings[n].hi <= floor {
		n++
	}
	if n == 0 && len(h.data.mappings) >= maxMappings {
		n = maxMappings / 8
	}
	if n > 0 {
		h.data.mappings = slices.Delete(h.data.mappings, 0, n)
	}
}

// mapLate gives their place to bytes that came before their mapping.
func (e *Engine) mapLate(f *flow, dir int, m mapping) {
	late := &f.half[dir].data.unmapped
	if len(late.Spans()) == 0 {
		return
	}
	for _, s := range late.In(m.lo, m.hi, nil) {
		late.Remove(s.Lo, s.Hi)
		e.account(f, dir, m.dsn+(s.Lo-m.lo), s.Len())
	}
}

// payload counts the payload of a segment, and for MPTCP what of it is new.
func (e *Engine) payload(f *flow, p *packet.Packet, dir int) {
	if p.Flags&packet.RST != 0 {
		return // its sequence number may be anything
	}
	e.gaps = f.half[dir].count(p, e.gaps[:0])
	if p.Payload == 0 {
		return
	}
	if f.firstPayload == 0 {
		f.firstPayload = p.TimeNS
	}
	f.lastPayload = p.TimeNS
	if !f.conn.mptcp {
		return
	}
	for _, gap := range e.gaps {
		e.place(f, dir, gap)
	}
}

// place finds the data that new bytes of a subflow are.
func (e *Engine) place(f *flow, dir int, gap interval.Span) {
	h := &f.half[dir]
	maps := h.data.mappings
	for at := mappingAt(maps, gap.Lo); at < len(maps) && maps[at].lo < gap.Hi; at++ {
		m := maps[at]
		if m.lo > gap.Lo {
			h.data.unmapped.Add(gap.Lo, m.lo)
			gap.Lo = m.lo
		}
		end := min(gap.Hi, m.hi)
		e.account(f, dir, m.dsn+(gap.Lo-m.lo), end-gap.Lo)
		gap.Lo = end
	}
	if gap.Lo < gap.Hi {
		h.data.unmapped.Add(gap.Lo, gap.Hi)
	}
}

// account takes size bytes of data that are new on their subflow. Data that
// another subflow carried before is reinjected; data that this subflow itself
// carried before, under other sequence numbers, is not.
func (e *Engine) account(f *flow, dir int, relative, size uint64) {
	c := f.conn
	d := &c.data[dir]
	lo, hi := relative, relative+size
	if len(c.flows) > 1 {
		own := &f.half[dir].data.own
		before, mine := d.seen.Overlap(lo, hi), own.Overlap(lo, hi)
		if before > mine {
			d.reinjected += before - mine
		}
		own.Add(lo, hi)
	}
	d.seen.Add(lo, hi)
	d.edge = max(d.edge, hi)
}
