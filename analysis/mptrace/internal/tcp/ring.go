package tcp

import (
	"sort"

	"mplab/analysis/mptrace/packet"
)

// sent is a captured segment: [hi − size, hi).
type sent struct {
	hi              uint64
	firstNS, lastNS int64
	size            uint32
	firstTS, lastTS uint32 // TSval of the first and the last transmission
	again           bool   // seen more than once, or filled a hole
	filled          bool   // filled a hole: an earlier transmission was not seen
}

// ring holds the unacknowledged segments of a direction in the order of their
// numbers, preceded by as many acknowledged ones as fit. The indices only
// increase; the element of an index is at the index modulo the length of buf,
// which is a power of two. The field room limits what the ring remembers, so that
// the ring can use the memory of an earlier one.
type ring struct {
	buf                []sent
	room               uint32 // maximum number of segments; at most len(buf)
	oldest, head, tail uint32 // [oldest, head) is acknowledged, [head, tail) is not
}

const (
	minRing = 4
	maxRing = 1 << 14
	// idleRing is large enough as long as no payload is acknowledged.
	idleRing = 64
)

// trim empties a ring and drops its memory if it is large.
func (r *ring) trim() {
	buf := r.buf
	if len(buf) > idleRing {
		buf = nil
	}
	*r = ring{buf: buf}
}

func (r *ring) at(i uint32) *sent { return &r.buf[i&uint32(len(r.buf)-1)] }

// push makes room for one more segment at the end and returns it. The ring only
// grows beyond idleRing if there are acknowledgements that will shrink it
// again.
func (r *ring) push(acknowledged bool) *sent {
	if r.tail-r.oldest == r.room {
		if r.oldest != r.head {
			r.oldest++ // drop an acknowledged segment
		} else {
			r.makeRoom(acknowledged)
		}
	}
	i := r.tail
	r.tail++
	return &r.buf[i&uint32(len(r.buf)-1)]
}

// makeRoom makes room for one more segment: it enlarges or thins the ring.
func (r *ring) makeRoom(acknowledged bool) {
	if r.room >= idleRing && (!acknowledged || r.room >= maxRing) {
		r.thin()
		return
	}
	r.room = max(minRing, 2*r.room)
	if int(r.room) > len(r.buf) {
		r.grow(make([]sent, r.room))
	}
}

func (r *ring) grow(buf []sent) {
	old := *r
	r.buf = buf
	for i := old.oldest; i != old.tail; i++ {
		*r.at(i) = *old.at(i)
	}
}

// thin merges pairs of unacknowledged segments.
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

// first returns the index of the first segment that ends above lo.
func (r *ring) first(lo uint64) uint32 {
	n := int(r.tail - r.oldest)
	return r.oldest + uint32(sort.Search(n, func(i int) bool { return r.at(r.oldest+uint32(i)).hi > lo }))
}

// insert puts a segment in its place among the unacknowledged ones.
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

// split splits the segment that contains the number `at`. If a network card
// splits super-segments, the sender can retransmit a part of one.
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

// times returns when [lo, hi) was first and last seen; 0: unknown.
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

// repeat records that [lo, hi) was sent again while all data below acked was
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
