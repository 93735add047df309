package ends

import (
	"slices"
	"sort"

	"mplab/analysis/mptrace/internal/interval"
)

// The unit of matching is the transmission: a range of sequence numbers that
// the sender's capture saw leave at one time. What arrives is compared byte by
// byte, so it does not matter that a network card cuts a super-segment into
// packets behind the sender's capture, nor that another one merges packets
// before the receiver's. A transmission has arrived when its last byte has.
//
// Transmissions of the same bytes are told apart by timestamp and IP
// identification, and by what had been sent at the time of the arrival.
// Where that leaves several, they form a group: when all of a group arrive
// they are taken in their order, when not all do nobody knows which were lost.

// transmission is a range [lo, hi) that was sent.
type transmission struct {
	lo, hi  uint64
	sentNS  int64
	lastNS  int64         // when the latest of its bytes arrived
	parts   *interval.Set // what arrived of it, when not all did at once
	group   *group
	order   uint32 // among all that the direction sent
	tsval   uint32
	payload uint32
	wire    uint32 // payload of one packet on the wire
	got     uint32 // sequence numbers that arrived
	id      uint16
	flags   transmissionFlag
}

type transmissionFlag uint8

const (
	stamped transmissionFlag = 1 << iota
	numbered
	again   // some of it was sent before
	outside // the receiver did not capture at the time
	ended   // the arrival has been told
)

func (t *transmission) size() uint32 { return uint32(t.hi - t.lo) }

func (t *transmission) arrived() bool { return t.got == t.size() }

// group is transmissions of the same bytes that nothing tells apart.
type group struct {
	sent   int
	got    int   // that arrived whole
	lastNS int64 // the latest was sent
}

// sure says whether it is known which of the group arrived.
func (g *group) sure() bool { return g == nil || g.got == g.sent }

// ranges is what is under way of one direction.
type ranges struct {
	// fresh is what was sent for the first time, in the order of time and of
	// sequence numbers, and disjoint. others is what was sent again, and what is
	// under way for so long that it is probably lost, in the order of lo, then of
	// time.
	fresh  []transmission
	head   int // of fresh: what is before has been dropped
	others []*transmission
	top    uint64 // above all that was sent
	next   int    // of fresh: what probably arrives next
}

// longest bounds the length of a transmission: that of an IP packet. (Jumbo
// packets of the loopback interface may be longer: BIG TCP.)
const longest = 1 << 20

func (r *ranges) send(t transmission) {
	if t.lo >= r.top || r.top == 0 {
		r.top = t.hi
		r.fresh = append(r.fresh, t)
		return
	}
	r.top = max(r.top, t.hi)
	t.flags |= again
	at := sort.Search(len(r.others), func(i int) bool { return r.others[i].lo > t.lo })
	r.others = slices.Insert(r.others, at, t.onHeap())
}

// onHeap is a copy; the original can stay on the stack.
func (t transmission) onHeap() *transmission {
	on := new(transmission)
	*on = t
	return on
}

// setAside takes the oldest of fresh out of its way.
func (r *ranges) setAside() {
	t := &r.fresh[r.head]
	at := sort.Search(len(r.others), func(i int) bool { return r.others[i].lo >= t.lo })
	r.others = slices.Insert(r.others, at, t.onHeap())
	r.head++
}

// twice says whether the capture holds a transmission already: the same bytes
// with the same identification. The kernel gives each packet its own.
func (r *ranges) twice(t *transmission) bool {
	if t.flags&numbered == 0 || t.lo >= r.top {
		return false
	}
	found := false
	r.overlapping(t.lo, t.hi, func(o *transmission) bool {
		found = o.lo == t.lo && o.hi == t.hi && o.id == t.id && o.tsval == t.tsval && o.flags&numbered != 0 && t.sentNS-o.sentNS < 1e9
		return !found
	})
	return found
}

// overlapping calls each with what is under way and overlaps [lo, hi), in the
// order of the first time, until it returns false.
func (r *ranges) overlapping(lo, hi uint64, each func(*transmission) bool) {
	i := r.next
	if i < r.head || i >= len(r.fresh) || r.fresh[i].lo > lo || r.fresh[i].hi <= lo {
		i = r.head + sort.Search(len(r.fresh)-r.head, func(i int) bool { return r.fresh[r.head+i].hi > lo })
	}
	for ; i < len(r.fresh) && r.fresh[i].lo < hi; i++ {
		r.next = i
		if r.fresh[i].hi == hi {
			r.next++
		}
		if !each(&r.fresh[i]) {
			return
		}
	}
	if len(r.others) == 0 {
		return
	}
	low := uint64(0)
	if lo > longest {
		low = lo - longest
	}
	i = sort.Search(len(r.others), func(i int) bool { return r.others[i].lo >= low })
	for ; i < len(r.others) && r.others[i].lo < hi; i++ {
		if r.others[i].hi > lo && !each(r.others[i]) {
			return
		}
	}
}

// missing appends to gaps what of [lo, hi) has not arrived of t.
func (t *transmission) missing(lo, hi uint64, gaps []interval.Span) []interval.Span {
	lo, hi = max(lo, t.lo), min(hi, t.hi)
	switch {
	case lo >= hi || t.arrived():
		return gaps
	case t.parts == nil:
		return append(gaps, interval.Span{Lo: lo, Hi: hi})
	}
	return t.parts.New(lo, hi, gaps)
}

// take notes that [lo, hi) of t arrived.
func (t *transmission) take(lo, hi uint64, timeNS int64) {
	t.lastNS = max(t.lastNS, timeNS)
	if lo <= t.lo && hi >= t.hi {
		t.got, t.parts = t.size(), nil
		return
	}
	if t.parts == nil {
		t.parts = new(interval.Set)
	}
	t.got += uint32(t.parts.Add(max(lo, t.lo), min(hi, t.hi)))
	if t.arrived() {
		t.parts = nil
	}
}

// lost returns how much of t is missing: packets on the wire and bytes.
func (t *transmission) lost() (packets, bytes uint32) {
	from := uint32(0)
	for _, gap := range t.missing(t.lo, t.hi, nil) {
		last := t.piece(gap.Hi - 1)
		packets += last + 1 - max(from, t.piece(gap.Lo))
		from = last + 1
	}
	return packets, min(t.size()-t.got, t.payload)
}

// between is how many packets on the wire hold [lo, hi).
func (t *transmission) between(lo, hi uint64) uint32 { return t.piece(hi-1) - t.piece(lo) + 1 }

// piece is the number of the packet on the wire that holds a byte. FIN goes
// with the last.
func (t *transmission) piece(at uint64) uint32 {
	return min(uint32(at-t.lo)/max(t.wire, 1), t.packets()-1)
}

// packets is how many packets t is on the wire.
func (t *transmission) packets() uint32 {
	return max(1, (t.payload+t.wire-1)/max(t.wire, 1))
}
