package mptcp

import (
	"mplab/analysis/mptrace/internal/hist"
	"mplab/analysis/mptrace/internal/tcp"
)

// direction is the data that one side sends on all subflows. Bytes have
// relative numbers: data sequence number minus base. The fields that every
// segment needs come first.
type direction struct {
	started  bool
	anywhere bool   // no data sequence number was seen: base is arbitrary
	short    bool   // only 32-bit numbers were seen: the upper half of base is a guess
	base     uint64 // data sequence number of relative number 0
	edge     uint64 // the highest relative number seen
	origin   uint64 // relative number of offset 0: 0, or unknownStart if the keys are unknown
	acked    uint64 // the highest DATA_ACK, relative
	right    uint64 // right edge of the receive window, relative; 0: unknown
	holes    holes  // between origin and edge

	unique    uint64
	freshNS   int64 // time of the latest new data; payloadNS: of the latest payload
	payloadNS int64
	idleNS    int64 // longest time without payload
	tightNS   int64 // last time when less than tightWindow was left of the receive window
	rate      rate
	burst     burst // the current burst
	flightMax uint64
	flightSum uint64
	flights   int64

	carriers   []*half // subflows with data that waits for its DATA_ACK
	lastACKNS  int64
	finNS      int64  // first DATA_FIN; 0: none
	finAt      uint64 // relative number of the DATA_FIN
	lastACK    uint64 // last DATA_ACK of this side, as on the wire, with its window
	lastWindow uint32
	windowMin  uint32
	windowMax  uint32
	windowSum  uint64
	windows    int64
	rtt        hist.Series
	ackSizes   hist.Sizes

	reinjected   uint64
	initial      uint64 // new data before the first DATA_ACK
	zeroWindows  int64
	firstFreshNS int64
	firstACKNS   int64
	finACKNS     int64
	bursts       bursts
	below        holes // below origin, if the start was not seen
}

// start fixes base when the first data sequence number is seen.
func (d *direction) start(c *Conn, dir uint8, dsn uint64, wide bool) {
	if c.multi.hasKey[dir] {
		d.startAnywhere(c, dir)
		return
	}
	d.startUnknown(dsn)
	d.short = !wide
}

// startAnywhere fixes base without a data sequence number.
func (d *direction) startAnywhere(c *Conn, dir uint8) {
	switch {
	case d.started:
	case c.multi.hasKey[dir]:
		d.base, d.started = c.multi.idsn[dir]+1, true
	default:
		d.startUnknown(0)
		d.short, d.anywhere = true, true
	}
}

// firstByte returns the relative number of the first byte of the data, as far
// as known.
func (d *direction) firstByte(c *Conn, dir uint8) uint64 {
	if !c.multi.hasKey[dir] || d.anywhere {
		return d.origin
	}
	return d.relative(c.multi.idsn[dir]+1, true)
}

func (d *direction) startUnknown(dsn uint64) {
	d.started, d.base = true, dsn-unknownStart
	d.origin, d.edge, d.acked = unknownStart, unknownStart, unknownStart
	d.below.open(0, unknownStart)
}

// relative converts a data sequence number or DATA_ACK of 32 or 64 bits into a
// relative number (RFC 8684 §3.3.1).
func (d *direction) relative(dsn uint64, wide bool) uint64 {
	if wide && !d.short {
		return dsn - d.base
	}
	relative := d.edge + uint64(int64(int32(uint32(dsn)-uint32(d.base+d.edge))))
	if wide { // now the upper half is known
		d.short = false
		d.base = dsn - relative
	}
	return relative
}

// row converts a relative number to the form in the tables: it is negative
// below the first byte seen if the start is unknown.
func (d *direction) row(relative uint64) int64 { return int64(relative - d.origin) }

// advances adds data at the edge or at the start of the lowest hole, and
// reports whether it could.
func (d *direction) advances(lo, hi uint64) bool {
	if lo == d.edge {
		d.edge = hi
		return true
	}
	return d.holes.fillLowest(lo, hi)
}

// account processes data that is new on its subflow: [lo, hi) of the
// connection's data. e.shift must be set. seg is nil if the bytes came in
// earlier segments.
func (e *Engine) account(h *half, seg *tcp.Segment, lo, hi uint64) {
	d := h.data
	if lo > d.edge {
		d.holes.open(d.edge, lo)
		d.edge = hi
	} else if !d.advances(lo, hi) {
		e.overlapping(h, seg, lo, hi)
		return
	}
	e.fresh(h, lo, hi)
	if e.listening {
		e.tellData(h, seg, lo, hi, nil)
	}
}

// overlapping processes data that may be partly old.
func (e *Engine) overlapping(h *half, seg *tcp.Segment, lo, hi uint64) {
	d := h.data
	spans := e.spans[0][:0]
	if lo < d.origin {
		spans = d.below.fill(lo, min(hi, d.origin), spans)
	}
	spans = d.holes.fill(max(lo, d.origin), min(hi, d.edge), spans)
	e.spans[0] = spans
	if hi > d.edge {
		old := max(lo, d.edge)
		d.edge = hi
		spans = append(spans, span(old, hi))
		e.spans[0] = spans
	}
	at := lo
	for _, fresh := range spans {
		if at < fresh.Lo {
			e.again(h, seg, at, fresh.Lo)
		}
		e.fresh(h, fresh.Lo, fresh.Hi)
		if e.listening {
			e.tellData(h, seg, fresh.Lo, fresh.Hi, nil)
		}
		at = fresh.Hi
	}
	if at < hi {
		e.again(h, seg, at, hi)
	}
}

// fresh processes data that no subflow had carried before.
func (e *Engine) fresh(h *half, lo, hi uint64) {
	d, now := h.data, e.nowNS
	d.unique += hi - lo
	d.freshNS = now
	b := &d.burst
	if b.sub != h.sub {
		e.newBurst(h, lo)
	}
	b.bytes += hi - lo
	b.lastNS = now
	if !e.counted { // once per segment
		e.counted = true
		b.packets++
		if d.edge > d.acked {
			flight := d.edge - d.acked
			d.flightSum += flight
			if flight > d.flightMax {
				d.flightMax = flight
			}
		}
		d.flights++
	}
	if d.edge+tightWindow > d.right && d.right != 0 {
		d.tightNS = now
	}
	waited := h.sent.waiting()
	if q := h.sent.segments; len(q) < h.sent.room && len(q) < cap(q) && (len(q) == 0 || q[len(q)-1].hi <= lo) {
		h.sent.segments = append(q, segment{lo, hi, now})
	} else {
		h.sent.add(lo, hi, now)
	}
	if !waited && h.sent.waiting() {
		d.carriers = append(d.carriers, h)
	}
}

// newBurst ends the burst of another subflow and starts a new one.
func (e *Engine) newBurst(h *half, lo uint64) {
	s, d := h.sub, h.data
	if d.firstFreshNS == 0 {
		d.firstFreshNS = e.nowNS
	}
	if s.firstNewNS == 0 {
		s.firstNewNS, s.firstNewDir = e.nowNS, h.dir
	}
	d.turn(s, lo, e.nowNS, e.out.Bursts != nil, e.options.Samples)
}
