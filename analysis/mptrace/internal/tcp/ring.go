package tcp

import (
	"sort"

	"mplab/analysis/mptrace/packet"
)

// sent is a segment as the capture saw it: [hi − size, hi).
type sent struct {
	hi              uint64
	firstNS, lastNS int64
	size            uint32
	firstTS, lastTS uint32 // TSval of the first and the last transmission
	again           bool   // seen more than once, or it filled a hole
	filled          bool   // it filled a hole: an earlier transmission was not seen
}

// ring holds the segments of a direction that are not acknowledged, in the
// order of their numbers, and as many acknowledged ones before them as there
// is room for. The indices only grow; an element stands at its index modulo
// the length, which is a power of two.
type ring struct {
	buf                []sent
	oldest, head, tail uint32 // [oldest, head) is acknowledged, [head, tail) is not
}

const (
	minRing = 4
	maxRing = 1 << 14
	// idleRing is enough as long as no acknowledgement of payload came.
	idleRing = 64
)

func (r *ring) at(i uint32) *sent { return &r.buf[i&uint32(len(r.buf)-1)] }

// push makes room for one more segment at the end and returns it. The ring
// grows far when acknowledgements come, to shrink it again.
func (r *ring) push(acknowledged bool) *sent {
	if r.tail-r.oldest == uint32(len(r.buf)) {
		if r.oldest != r.head {
			r.oldest++ // forget an acknowledged one
		} else {
			r.room(acknowledged)
		}
	}
	i := r.tail
	r.tail++
	return &r.buf[i&uint32(len(r.buf)-1)]
}

// room makes room for one more segment: the ring grows or thins.
func (r *ring) room(acknowledged bool) {
	if n := len(r.buf); n < idleRing || (acknowledged && n < maxRing) {
		r.grow(make([]sent, max(minRing, 2*n)))
	} else {
		r.thin()
	}
}

func (r *ring) grow(buf []sent) {
	old := *r
	r.buf = buf
	for i := old.oldest; i != old.tail; i++ {
		*r.at(i) = *old.at(i)
	}
}

// thin makes one segment of every two that are not acknowledged.
func (r *ring) thin() {
	to := r.head
	for i := r.head; i != r.tail; i += 2 {
		e := *r.at(i)
		if i+1 != r.tail {
			e = join(e, *r.at(i + 1))
		} else {
			i--
		}
		*r.at(to) = e
		to++
	}
	r.tail = to
}

func join(a, b sent) sent {
	return sent{
		hi: b.hi, size: uint32(b.hi - a.hi + uint64(a.size)), firstNS: min(a.firstNS, b.firstNS), lastNS: max(a.lastNS, b.lastNS),
		firstTS: b.firstTS, lastTS: b.lastTS, again: a.again || b.again, filled: a.filled || b.filled,
	}
}

// first is the index of the first segment that ends above lo.
func (r *ring) first(lo uint64) uint32 {
	n := int(r.tail - r.oldest)
	return r.oldest + uint32(sort.Search(n, func(i int) bool { return r.at(r.oldest+uint32(i)).hi > lo }))
}

// insert puts a segment in its place among those that are not acknowledged.
func (r *ring) insert(e sent, acknowledged bool) {
	r.push(acknowledged)
	r.tail--
	i := r.first(e.hi)
	if int32(i-r.head) < 0 {
		i = r.head
	}
	for j := r.tail; j != i; j-- {
		*r.at(j) = *r.at(j - 1)
	}
	*r.at(i) = e
	r.tail++
}

// split makes two segments of the one across the number at. A sender whose
// network card cuts segments repeats parts of what the capture saw as one.
func (r *ring) split(at uint64, acknowledged bool) {
	if i := r.first(at); i != r.tail && int32(i-r.head) >= 0 {
		if e := r.at(i); e.hi > at && e.hi-uint64(e.size) < at {
			left := *e
			left.hi, left.size = at, e.size-uint32(e.hi-at)
			e.size = uint32(e.hi - at)
			r.insert(left, acknowledged)
		}
	}
}

// times are when [lo, hi) was seen first and last, 0 when that is not known.
func (r *ring) times(lo, hi uint64) (firstNS, lastNS int64) {
	for i := r.first(lo); i != r.tail; i++ {
		e := r.at(i)
		if e.hi-uint64(e.size) >= hi {
			break
		}
		if firstNS == 0 || e.firstNS < firstNS {
			firstNS = e.firstNS
		}
		lastNS = max(lastNS, e.lastNS)
	}
	return firstNS, lastNS
}

// repeat takes note that [lo, hi) was sent again, when all below acked was
// acknowledged.
func (r *ring) repeat(lo, hi, acked uint64, p *packet.Packet, acknowledged bool) {
	for _, end := range [...]uint64{lo, hi} {
		if end > acked {
			r.split(end, acknowledged)
		}
	}
	for i := r.first(lo); i != r.tail; i++ {
		e := r.at(i)
		if e.hi-uint64(e.size) >= hi {
			return
		}
		e.again, e.lastNS, e.lastTS = true, max(e.lastNS, p.TimeNS), p.TSVal
	}
}
