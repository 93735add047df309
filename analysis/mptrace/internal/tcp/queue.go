package tcp

import "mplab/internal/list"

// Each live flow is in one of these queues.
const (
	opening  = iota // only SYN and RST were seen
	oneSided        // only one direction was seen
	active
	closed
	queues
)

// queue is a list of flows, ordered by the time when they were added or last
// checked.
type queue = list.List[Flow, *Flow]

// enqueue adds a flow to the end of a queue.
func (t *Tracker) enqueue(f *Flow, to uint8, nowNS int64) {
	f.queue, f.queuedNS = to, nowNS
	t.queues[to].PushBack(f)
}

// move moves a flow to the end of a queue.
func (t *Tracker) move(f *Flow, to uint8, nowNS int64) {
	t.queues[f.queue].Remove(f)
	t.enqueue(f, to, nowNS)
}

// sweepEveryNS is the maximum trace time between two sweeps.
const sweepEveryNS = 1e9

// timePasses runs a sweep. If the clock jumps, or a single time stamp is out of
// place, the jump does not count as idle time.
func (t *Tracker) timePasses(nowNS int64) {
	if jump := nowNS - t.nowNS; max(jump, -jump) > t.o.IdleNS {
		t.jumpNS = nowNS
		t.sweepNS = min(t.sweepNS, nowNS)
	}
	t.sweep(min(nowNS, t.nowNS))
}

// sweep ends the flows whose time is over. It checks each flow a few times per
// IdleNS, so the cost per packet is negligible.
func (t *Tracker) sweep(nowNS int64) {
	t.sweepNS = nowNS + min(sweepEveryNS, t.o.IdleNS/4, t.o.ClosedNS/4)
	t.sweepClosed(nowNS)
	t.tombstones.expire(nowNS - lateNS)
	for _, i := range [...]uint8{opening, oneSided, active} {
		q := &t.queues[i]
		for n := q.Len(); n > 0 && nowNS-q.Front().queuedNS >= t.o.IdleNS/4; n-- {
			if f := q.Front(); nowNS-max(f.LastNS, t.jumpNS) >= t.o.IdleNS {
				t.end(f)
			} else {
				t.move(f, i, nowNS)
			}
		}
	}
}

// sweepClosed ends closed flows without recent packets.
func (t *Tracker) sweepClosed(nowNS int64) {
	q := &t.queues[closed]
	for n := q.Len(); n > 0 && nowNS-q.Front().queuedNS >= t.o.ClosedNS; n-- {
		f, keepNS := q.Front(), t.o.ClosedNS
		if !f.over() {
			keepNS = max(keepNS, unsettledNS)
		}
		if nowNS-f.LastNS >= keepNS {
			t.retire(f)
		} else {
			t.move(f, closed, nowNS)
		}
	}
}

// Shares of MaxFlows. SYNs are easy to forge, and real ones are answered soon.
// One-sided flows are as large as others and as easy to forge. Closed flows are
// large and rarely needed.
const (
	openingShare   = 4
	oneSidedShare  = 8
	closedShare    = 8
	tombstoneShare = 4
)

// makeRoom ends flows until there is room for one more: first the oldest of
// those without an answer, then closed ones, then an idle one.
func (t *Tracker) makeRoom() {
	if q := &t.queues[opening]; q.Len() > t.o.MaxFlows/openingShare {
		t.evict(q.Front())
	}
	if q := &t.queues[oneSided]; q.Len() > t.o.MaxFlows/oneSidedShare {
		t.evict(q.Front())
	}
	if q := &t.queues[closed]; q.Len() > t.o.MaxFlows/closedShare {
		t.retire(q.Front())
	}
	stones := &t.tombstones
	if len(stones.times) > t.o.MaxFlows/tombstoneShare {
		stones.remove(stones.oldest().hash)
	}
	if t.table.used+len(stones.times) < t.o.MaxFlows {
		return
	}
	switch {
	case len(stones.times) > 0:
		stones.remove(stones.oldest().hash)
	case t.queues[opening].Len() > 0:
		t.evict(t.queues[opening].Front())
	case t.queues[oneSided].Len() > 0:
		t.evict(t.queues[oneSided].Front())
	case t.queues[closed].Len() > 0:
		t.end(t.queues[closed].Front())
	default:
		t.evict(t.idlest())
	}
}

// retire ends a closed flow and leaves a tombstone, so that late packets do not
// start a new flow.
func (t *Tracker) retire(f *Flow) {
	hash, timeNS := t.table.hashOf(f), f.LastNS
	t.end(f)
	t.tombstones.add(hash, timeNS)
}

func (t *Tracker) evict(f *Flow) {
	t.Evicted++
	t.end(f)
}

// idlest returns the active flow that has been idle longest, among the first
// few of the queue. Flows with packets since they were queued move to the end.
func (t *Tracker) idlest() *Flow {
	const few = 16
	f := t.queues[active].Front()
	victim := f
	for range few {
		if f == nil {
			break
		}
		if f.LastNS < victim.LastNS {
			victim = f
		}
		following := t.queues[active].Next(f)
		if f.LastNS > f.queuedNS {
			t.move(f, active, f.LastNS)
		}
		f = following
	}
	return victim
}
