package ends

import (
	"slices"

	"mplab/analysis/mptrace/packet"
)

const flagRST = packet.RST

// direction is one direction of a flow: its transmissions in flight, and the
// outcome of all that were sent.
type direction struct {
	flow   *flow
	dir    uint8
	ranges ranges
	acks   acks
	count  count
	losses []Loss // without connection, subflow and direction

	number  uint64 // last sent sequence number, unwrapped
	base    uint64 // origin of relative sequence numbers
	order   uint32 // of the next transmission
	top     uint32 // above the order of all that arrived
	mss     uint16 // announced by the receiver; 0: unknown
	started bool
	checked int64 // time of the last search for old transmissions
}

// rules holds the properties of a direction's path during one pass.
type rules struct {
	judge      judge
	kept       bool  // the network preserves the IP identification
	fastest    int64 // ns; minimum delay
	slack      int64 // ns; tolerance for the error of the clocks
	begin, end int64 // start and end of the receiver's capture
	window     int64 // ns; a transmission that has not arrived by then is lost
	most       int   // maximum number of transmissions in flight

	fits []*transmission // scratch
}

// judge receives the outcome of transmissions.
type judge interface {
	// delay reports an arrival that is matched to one transmission. Calls are
	// in the order of arrival, except for transmissions that could only be
	// distinguished from their copies later.
	delay(d *direction, sentNS, arrivedNS int64)
	// lose reports that [lo, hi) of t did not arrive.
	lose(d *direction, t *transmission, lo, hi uint64)
	loseAck(d *direction, a *ack)
}

// linger is how long an arrived transmission is kept to recognise duplicates.
const linger = 5e8 // in ns

// patience is how long a transmission that has not arrived may block those sent
// after it.
const patience = 1e9 // in ns

// defaultMSS is used if the capture has no MSS option: the MSS of Ethernet.
const defaultMSS = 1460

// send records a packet that left the sender.
func (d *direction) send(u *unit, r *rules) {
	flags := transmissionFlag(0)
	if u.stamped {
		flags |= stamped
	}
	if u.numbered {
		flags |= numbered
	}
	if u.timeNS+r.fastest < r.begin {
		flags |= outside
	}
	if u.length == 0 {
		if dropped := d.acks.send(u, d.order, flags); dropped != nil {
			d.settleAck(dropped, r)
		}
		d.order++
		return
	}
	lo := d.unwrap(u.seq)
	d.number = lo
	if d.base == 0 {
		d.base = lo
	}
	if u.flags&packet.SYN != 0 {
		d.base = lo + 1
	}
	if d.mss == 0 {
		d.mss = defaultMSS
	}
	mss := uint32(d.mss)
	t := transmission{
		lo: lo, hi: lo + uint64(u.length), sentNS: u.timeNS, order: d.order, tsval: u.tsval,
		payload: u.payload, wire: max(mss-min(uint32(u.optionBytes), mss), 1), id: u.id, flags: flags,
	}
	if t.payload <= t.wire {
		t.wire = max(t.payload, 1)
	}
	if d.ranges.twice(&t) {
		return
	}
	d.order++
	d.ranges.send(t)
}

func (d *direction) unwrap(seq uint32) uint64 {
	if !d.started {
		d.number, d.started = 1<<32|uint64(seq), true
	}
	return unwrap(d.number, seq)
}

// relative returns an offset from the first byte of payload. If the SYN was not
// seen, the origin is the first byte seen.
func (d *direction) relative(at uint64) int64 { return int64(at - d.base) }

// arrive records a packet that reached the receiver.
func (d *direction) arrive(u *unit, r *rules) {
	if u.length == 0 {
		d.arriveAck(u, r)
		return
	}
	lo := d.unwrap(u.seq)
	hi := lo + uint64(u.length)
	fits := d.candidates(lo, hi, u, r, r.fits[:0])
	r.fits = fits
	if len(fits) == 0 {
		d.count.unseen++
		return
	}
	d.cutting(fits[0], lo, hi)
	if t := fits[0]; len(fits) == 1 && t.got == 0 && t.group == nil {
		t.take(lo, hi, u.timeNS)
		if t.arrived() {
			d.delivered(t, r)
		}
		return
	}
	for _, span := range d.assign(fits, lo, hi, u.timeNS, r) { // parts that had arrived before
		for _, t := range fits {
			if span.Lo < span.Hi && span.Lo >= t.lo && span.Lo < t.hi {
				d.count.duplicated += int64(t.between(span.Lo, min(span.Hi, t.hi)))
				span.Lo = min(span.Hi, t.hi)
			}
		}
	}
}

// delivered records that all of t arrived.
func (d *direction) delivered(t *transmission, r *rules) {
	t.flags |= ended
	if t.group != nil {
		t.group.got++
		return // the group decides later whether it was this one
	}
	d.overtaken(t.order)
	r.judge.delay(d, t.sentNS, t.lastNS)
}

func (d *direction) overtaken(order uint32) {
	if order < d.top {
		d.count.reordered++
	}
	d.top = max(d.top, order+1)
}

func (d *direction) arriveAck(u *unit, r *rules) {
	a, what := d.acks.arrive(u, r.kept, u.timeNS-r.fastest+r.slack)
	switch what {
	case unknown:
		d.count.unseen++
	case duplicate:
		d.count.duplicated++
	case matched:
		if !a.vague {
			d.overtaken(a.order)
			r.judge.delay(d, a.sentNS, a.lastNS)
		}
	}
}

// settle ends transmissions that were sent too long before now to still arrive.
// It keeps arrived ones for a moment to recognise duplicates.
func (d *direction) settle(now int64, r *rules) {
	d.checked = now
	w := &d.ranges
	if len(w.fresh)-w.head+len(w.others) > r.most || len(d.acks.row)-d.acks.head > r.most {
		now += r.window / 2 // too many in flight for the memory bound: wait half as long
	}
	for w.head < len(w.fresh) {
		if t := &w.fresh[w.head]; t.old(now, r) {
			d.settleRange(t, r)
			w.head++
		} else if t.sentNS+patience < now && !t.arrived() {
			w.setAside()
		} else {
			break
		}
	}
	w.fresh, w.head, w.next = compact(w.fresh, w.head, w.next)
	w.others = slices.DeleteFunc(w.others, func(t *transmission) bool {
		if t.old(now, r) {
			d.settleRange(t, r)
			return true
		}
		return false
	})
	a := &d.acks
	for a.head < len(a.row) && a.row[a.head].old(now, r) {
		d.settleAck(&a.row[a.head], r)
		a.head++
	}
	a.row, a.head, a.next = compact(a.row, a.head, a.next)
	a.odd = slices.DeleteFunc(a.odd, func(o ack) bool {
		if o.old(now, r) {
			d.settleAck(&o, r)
			return true
		}
		return false
	})
}

// compact drops the items before head if they are the larger part.
func compact[T any](s []T, head, next int) ([]T, int, int) {
	if head == len(s) {
		if cap(s) > 256 {
			return nil, 0, 0
		}
		return s[:0], 0, 0
	}
	if head < 64 || head < len(s)/2 {
		return s, head, next
	}
	n := copy(s, s[head:])
	clear(s[n:])
	return s[:n], 0, max(0, next-head)
}

func (t *transmission) old(now int64, r *rules) bool {
	if t.group != nil {
		return t.group.lastNS+r.window < now
	}
	return t.sentNS+r.window < now || t.arrived() && t.lastNS+linger < now
}

func (a *ack) old(now int64, r *rules) bool {
	return a.sentNS+r.window < now || a.got && a.lastNS+linger < now
}

// settleRange counts a transmission whose outcome is final.
func (d *direction) settleRange(t *transmission, r *rules) {
	c := &d.count
	if !t.arrived() && (t.flags&outside != 0 || t.sentNS+max(c.slowest, r.fastest) > r.end) {
		c.notJudged++
		return
	}
	c.sent++
	c.wireSent += int64(t.packets())
	c.bytesSent += int64(t.payload)
	if t.flags&again != 0 {
		c.retransmitted++
	}
	if !t.group.sure() {
		c.ambiguous++
	}
	if t.arrived() {
		c.arrived++
		if t.group != nil && t.group.sure() {
			r.judge.delay(d, t.sentNS, t.lastNS)
		}
		return
	}
	c.lost++
	packets, bytes := t.lost()
	c.wireLost += int64(packets)
	c.bytesLost += int64(bytes)
	for _, gap := range t.missing(t.lo, t.hi, nil) {
		r.judge.lose(d, t, gap.Lo, gap.Hi)
	}
}

func (d *direction) settleAck(a *ack, r *rules) {
	c := &d.count
	known := r.kept && a.flags&numbered != 0
	if !a.got && (!known || a.flags&outside != 0 || a.sentNS+max(c.slowest, r.fastest) > r.end) {
		c.notJudged++
		return
	}
	c.sent++
	c.wireSent++
	if a.got {
		c.arrived++
		if a.vague {
			c.ambiguous++
		}
		return
	}
	c.lost++
	c.wireLost++
	r.judge.loseAck(d, a)
}
