package ends

import (
	"slices"
	"sort"

	"mplab/analysis/mptrace/internal/interval"
)

// The unit of matching is the transmission: a range of sequence numbers that
// the sender's capture saw leave at one time. Arrivals are compared byte by
// byte, so it does not matter if a network card splits a super-segment after
// the sender's capture, or if another one merges packets before the receiver's
// capture. A transmission has arrived when its last byte has arrived.
//
// Transmissions of the same bytes are distinguished by timestamp, by IP
// identification, and by whether they had been sent before the arrival. If
// several remain, they form a group. If all of a group arrive, they are matched
// in order; otherwise it is unknown which ones were lost.

// transmission is a sent range [lo, hi).
type transmission struct {
	lo, hi  uint64
	sentNS  int64
	lastNS  int64         // arrival of its latest byte
	parts   *interval.Set // the parts that arrived, if not all arrived at once
	group   *group
	order   uint32 // number of the transmission in its direction
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
	again   // some of its bytes were sent before
	outside // the receiver was not capturing at that time
	ended   // the arrival has been reported
)

func (t *transmission) size() uint32 { return uint32(t.hi - t.lo) }

func (t *transmission) arrived() bool { return t.got == t.size() }

// group holds transmissions of the same bytes that cannot be distinguished.
type group struct {
	sent   int
	got    int   // number that arrived completely
	lastNS int64 // sending time of the latest one
}

// sure reports whether it is known which transmissions of the group arrived.
func (g *group) sure() bool { return g == nil || g.got == g.sent }

// ranges holds the transmissions in flight in one direction.
type ranges struct {
	// fresh holds first transmissions, in the order of time and sequence
	// numbers, disjoint. others holds retransmissions and transmissions in
	// flight for so long that they are probably lost, in the order of lo, then
	// of time.
	fresh  []transmission
	head   int // index in fresh; those before were dropped
	others []*transmission
	top    uint64 // above all sent bytes
	next   int    // index in fresh of the probable next arrival
}

// longest bounds the length of a transmission, which is at most an IP packet.
// (Jumbo packets of the loopback interface can be longer: BIG TCP.)
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

// onHeap returns a copy on the heap, so that the original can stay on the
// stack.
func (t transmission) onHeap() *transmission {
	on := new(transmission)
	*on = t
	return on
}

// setAside moves the oldest transmission from fresh to others.
func (r *ranges) setAside() {
	t := &r.fresh[r.head]
	at := sort.Search(len(r.others), func(i int) bool { return r.others[i].lo >= t.lo })
	r.others = slices.Insert(r.others, at, t.onHeap())
	r.head++
}

// twice reports whether the capture already holds a transmission with the same
// bytes and the same identification. The kernel gives each packet a different
// one.
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

// overlapping calls each for every transmission in flight that overlaps [lo,
// hi), until it returns false. First transmissions come first.
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

// missing appends the parts of [lo, hi) that have not arrived of t to gaps.
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

// take records that [lo, hi) of t arrived.
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

// lost returns the missing part of t: packets on the wire and bytes.
func (t *transmission) lost() (packets, bytes uint32) {
	from := uint32(0)
	for _, gap := range t.missing(t.lo, t.hi, nil) {
		last := t.piece(gap.Hi - 1)
		packets += last + 1 - max(from, t.piece(gap.Lo))
		from = last + 1
	}
	return packets, min(t.size()-t.got, t.payload)
}

// between returns the number of packets on the wire that hold [lo, hi).
func (t *transmission) between(lo, hi uint64) uint32 { return t.piece(hi-1) - t.piece(lo) + 1 }

// piece returns the number of the packet on the wire that holds a byte. FIN is
// in the last packet.
func (t *transmission) piece(at uint64) uint32 {
	return min(uint32(at-t.lo)/max(t.wire, 1), t.packets()-1)
}

// packets returns the number of packets of t on the wire.
func (t *transmission) packets() uint32 {
	return max(1, (t.payload+t.wire-1)/max(t.wire, 1))
}
