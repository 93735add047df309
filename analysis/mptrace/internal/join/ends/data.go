package ends

import (
	"slices"
	"sort"

	"mplab/analysis/mptrace/tables"
)

// data describes the data of one direction of a connection, by offset from its
// first byte (by DSN, or by sequence number for plain TCP).
type data struct {
	waiting  waiting
	arrivals map[*flow]*arrivals // by subflow; only for Multipath TCP
	again    []reinjected        // reinjections with unsettled arrivals, in the order of time
}

// waiting is the receiver's reassembly queue, derived from the receiver's
// capture: data that arrived before earlier data.
type waiting struct {
	next    uint64 // all data below has arrived
	started bool
	held    []held // in the order of lo, disjoint, above next
	bytes   uint64 // in held

	arrived, waited, unknown, most uint64 // bytes; see Reordering
	atOnce                         int64  // bytes that did not wait
	late                           distribution
	sum                            float64 // ns · bytes
}

type held struct {
	lo, hi uint64
	timeNS int64
}

func (h held) size() uint64 { return h.hi - h.lo }

// mostHeld bounds the number of ranges that wait for one hole.
const mostHeld = 1 << 15

// arrive adds data [lo, hi).
func (w *waiting) arrive(lo, hi uint64, timeNS int64) {
	if !w.started {
		w.next, w.started = lo, true
	}
	if lo = max(lo, w.next); lo >= hi {
		return
	}
	if lo == w.next && len(w.held) == 0 {
		w.arrived += hi - lo
		w.atOnce += int64(hi - lo)
		w.next = hi
		return
	}
	var fresh uint64
	w.held, fresh = insert(w.held, lo, hi, timeNS)
	w.arrived += fresh
	w.bytes += fresh
	w.drain(timeNS)
	w.most = max(w.most, w.bytes)
	if len(w.held) > mostHeld {
		w.skip(w.held[len(w.held)/2].lo)
	}
}

// insert adds the parts of [lo, hi) that are not yet held, and returns their
// size.
func insert(all []held, lo, hi uint64, timeNS int64) (_ []held, fresh uint64) {
	i := len(all)
	if i > 0 && all[i-1].hi > lo {
		i = sort.Search(i, func(i int) bool { return all[i].hi > lo })
	}
	for ; lo < hi; i++ {
		end := hi
		if i < len(all) {
			end = min(end, all[i].lo)
		}
		if lo < end {
			all = slices.Insert(all, i, held{lo, end, timeNS})
			fresh += end - lo
		}
		lo = max(lo, all[i].hi)
	}
	return all, fresh
}

// drain releases the data without a hole before it to the application.
func (w *waiting) drain(now int64) {
	n := 0
	for n < len(w.held) && w.held[n].lo == w.next {
		h := w.held[n]
		w.bytes -= h.size()
		w.next = h.hi
		if delay := now - h.timeNS; delay > 0 {
			w.waited += h.size()
			w.late.add(delay, int64(h.size()))
			w.sum += float64(delay) * float64(h.size())
		} else {
			w.atOnce += int64(h.size())
		}
		n++
	}
	w.held = slices.Delete(w.held, 0, n)
}

// acknowledged records that the receiver has all data below offset. Data below
// it that is still missing is missing only in the capture. The time at which
// the application could read the data behind it is unknown.
func (w *waiting) acknowledged(offset uint64, now int64) {
	if w.started && offset > w.next {
		w.skip(offset)
		w.drain(now)
	}
}

func (w *waiting) skip(offset uint64) {
	n := 0
	for n < len(w.held) && w.held[n].lo < offset {
		w.bytes -= w.held[n].size()
		w.waited += w.held[n].size()
		w.unknown += w.held[n].size()
		offset = max(offset, w.held[n].hi)
		n++
	}
	w.held = slices.Delete(w.held, 0, n)
	w.next = max(w.next, offset)
}

// row fills in the waiting times. It returns false if nothing arrived.
func (w *waiting) row(row *Reordering) bool {
	if w.arrived == 0 {
		return false
	}
	left := w.bytes // still waiting
	row.Bytes, row.WaitedBytes = int64(w.arrived), int64(w.waited+left)
	row.UnknownBytes, row.WaitingMax = int64(w.unknown+left), int64(w.most)
	row.WaitedPercent = tables.Just(100 * float64(row.WaitedBytes) / float64(row.Bytes))
	known := float64(w.arrived - w.unknown - left)
	if known == 0 {
		return true
	}
	all := w.late
	all.few = slices.Clone(w.late.few)
	if w.atOnce > 0 {
		all.add(0, w.atOnce)
	}
	q := all.quantiles(0.5, 0.75, 0.95, 0.99)
	row.DelayP50MS, row.DelayP75MS = milliseconds(q[0]), milliseconds(q[1])
	row.DelayP95MS, row.DelayP99MS = milliseconds(q[2]), milliseconds(q[3])
	row.DelayMaxMS, row.DelayMeanMS = milliseconds(float64(all.max)), milliseconds(w.sum/known)
	if w.late.weight > 0 {
		row.WaitedMeanMS = milliseconds(w.sum / float64(w.late.weight))
	}
	return true
}

// arrivals holds the first arrival times of the data on one subflow.
type arrivals struct {
	held   []held // in the order of lo, disjoint
	before uint64 // data below has been forgotten
}

const (
	mostArrivals  = 1 << 15
	arrivalsKept  = 60e9 // ns
	arrivalsCheck = 1 << 10
)

func (a *arrivals) add(lo, hi uint64, timeNS int64) {
	a.held, _ = insert(a.held, lo, hi, timeNS)
	if len(a.held)%arrivalsCheck == 0 {
		a.forget(timeNS)
	}
}

func (a *arrivals) forget(now int64) {
	n := 0
	for n < len(a.held) && (a.held[n].timeNS < now-arrivalsKept || len(a.held)-n > mostArrivals) {
		a.before = a.held[n].hi
		n++
	}
	a.held = slices.Delete(a.held, 0, n)
}

// whole returns the time when all of [lo, hi) had arrived.
func (a *arrivals) whole(lo, hi uint64) (timeNS int64, ok bool) {
	if a == nil {
		return 0, false
	}
	i := sort.Search(len(a.held), func(i int) bool { return a.held[i].hi > lo })
	for ; i < len(a.held) && a.held[i].lo <= lo; i++ {
		timeNS = max(timeNS, a.held[i].timeNS)
		if lo = a.held[i].hi; lo >= hi {
			return timeNS, true
		}
	}
	return 0, false
}

// reinjected is data that one subflow carried after another one.
type reinjected struct {
	lo, hi   uint64
	timeNS   int64
	from, to *flow
}

// reinjection fills in the arrivals of the two copies.
func (d *data) reinjection(r *reinjected, row *Reinjection) {
	row.TimeNS, row.Offset, row.Bytes = r.timeNS, int64(r.lo), int64(r.hi-r.lo)
	original, copied := d.arrivals[r.from], d.arrivals[r.to]
	originalNS, came := original.whole(r.lo, r.hi)
	copyNS, copyCame := copied.whole(r.lo, r.hi)
	if came {
		row.OriginalNS = tables.Just(originalNS)
	}
	if copyCame {
		row.CopyNS = tables.Just(copyNS)
	}
	forgotten := !came && original != nil && r.lo < original.before
	switch {
	case came && copyCame:
		row.CopyFirst = tables.Just(copyNS < originalNS)
		row.GainMS = tables.Just(float64(originalNS-copyNS) / 1e6)
	case forgotten: // at least one minute ago
		row.CopyFirst = tables.Maybe[bool]{}
	case came || copyCame:
		row.CopyFirst = tables.Just(copyCame)
	}
}
