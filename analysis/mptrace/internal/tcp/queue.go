package tcp

// Each live flow is in one of these queues.
const (
	opening  = iota // only SYN and RST were seen
	oneSided        // only one direction was seen
	active
	closed
	tombstones // flows that have ended, reduced to their addresses
	queues
)

// queue is a list of flows, ordered by the time when they were added or last
// checked.
type queue struct {
	head, tail *Flow
	len        int
}

func (q *queue) push(f *Flow, nowNS int64) {
	f.queuedNS = nowNS
	f.prev, f.next = q.tail, nil
	if q.tail == nil {
		q.head = f
	} else {
		q.tail.next = f
	}
	q.tail = f
	q.len++
}

func (q *queue) remove(f *Flow) {
	if f.prev == nil {
		q.head = f.next
	} else {
		f.prev.next = f.next
	}
	if f.next == nil {
		q.tail = f.prev
	} else {
		f.next.prev = f.prev
	}
	f.prev, f.next = nil, nil
	q.len--
}

// move moves a flow to the end of a queue.
func (t *Tracker) move(f *Flow, to uint8, nowNS int64) {
	t.queues[f.queue].remove(f)
	f.queue = to
	t.queues[to].push(f, nowNS)
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
	for f := t.queues[tombstones].head; f != nil && nowNS-f.queuedNS >= lateNS; f = t.queues[tombstones].head {
		t.forget(f)
	}
	for _, i := range [...]uint8{opening, oneSided, active} {
		q := &t.queues[i]
		for n := q.len; n > 0 && nowNS-q.head.queuedNS >= t.o.IdleNS/4; n-- {
			if f := q.head; nowNS-max(f.LastNS, t.jumpNS) >= t.o.IdleNS {
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
	for n := q.len; n > 0 && nowNS-q.head.queuedNS >= t.o.ClosedNS; n-- {
		f, keepNS := q.head, t.o.ClosedNS
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
	if q := &t.queues[opening]; q.len > t.o.MaxFlows/openingShare {
		t.evict(q.head)
	}
	if q := &t.queues[oneSided]; q.len > t.o.MaxFlows/oneSidedShare {
		t.evict(q.head)
	}
	if q := &t.queues[closed]; q.len > t.o.MaxFlows/closedShare {
		t.retire(q.head)
	}
	if q := &t.queues[tombstones]; q.len > t.o.MaxFlows/tombstoneShare {
		t.forget(q.head)
	}
	if t.table.used < t.o.MaxFlows {
		return
	}
	switch {
	case t.queues[tombstones].len > 0:
		t.forget(t.queues[tombstones].head)
	case t.queues[opening].len > 0:
		t.evict(t.queues[opening].head)
	case t.queues[oneSided].len > 0:
		t.evict(t.queues[oneSided].head)
	case t.queues[closed].len > 0:
		t.end(t.queues[closed].head)
	default:
		t.evict(t.idlest())
	}
}

// retire ends a closed flow and leaves a tombstone, so that late packets do not
// start a new flow.
func (t *Tracker) retire(f *Flow) {
	t.end(f)
	tombstone := &Flow{Ends: f.Ends, queue: tombstones}
	t.table.insert(tombstone)
	t.queues[tombstones].push(tombstone, f.LastNS)
}

// forget removes the tombstone of a flow.
func (t *Tracker) forget(tombstone *Flow) {
	t.queues[tombstones].remove(tombstone)
	t.table.remove(tombstone)
}

func (t *Tracker) evict(f *Flow) {
	t.Evicted++
	t.end(f)
}

// idlest returns the active flow that has been idle longest, among the first
// few of the queue. Flows with packets since they were queued move to the end.
func (t *Tracker) idlest() *Flow {
	const few = 16
	f := t.queues[active].head
	victim := f
	for range few {
		if f == nil {
			break
		}
		if f.LastNS < victim.LastNS {
			victim = f
		}
		following := f.next
		if f.LastNS > f.queuedNS {
			t.move(f, active, f.LastNS)
		}
		f = following
	}
	return victim
}
