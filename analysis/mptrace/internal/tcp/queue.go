package tcp

// Live flows stand in one of these queues.
const (
	opening  = iota // only SYN and RST were seen
	oneSided        // one direction was heard alone
	active
	closed
	tombstones // flows that have ended: their addresses alone
	queues
)

// queue is a list of flows, by the time at which they came into it or were
// looked at last.
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

// move puts a flow at the end of a queue.
func (t *Tracker) move(f *Flow, to uint8, nowNS int64) {
	t.queues[f.queue].remove(f)
	f.queue = to
	t.queues[to].push(f, nowNS)
}

// sweepEveryNS is the longest time of the trace between two sweeps.
const sweepEveryNS = 1e9

// timePasses ends flows now and then. When the clock jumps, or a single stamp is
// out of place, that is no time in which flows were idle.
func (t *Tracker) timePasses(nowNS int64) {
	if jump := nowNS - t.nowNS; max(jump, -jump) > t.o.IdleNS {
		t.jumpNS = nowNS
		t.sweepNS = min(t.sweepNS, nowNS)
	}
	t.sweep(min(nowNS, t.nowNS))
}

// sweep ends the flows whose time is up. Each is looked at a few times per
// IdleNS, so this costs next to nothing per packet.
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

// sweepClosed ends closed flows that had no packet for some time.
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

// Shares of MaxFlows. SYNs are easy to forge, and those that get an answer get
// it soon; one-sided flows are as large as others and as easy to forge; closed
// ones are large and of little use.
const (
	openingShare   = 4
	oneSidedShare  = 8
	closedShare    = 8
	tombstoneShare = 4
)

// makeRoom ends flows until one more may begin: those that never got an
// answer, oldest first, then closed ones, then one that has been idle.
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

// retire ends a flow that is closed and puts a tombstone in its place, so that what
// comes late is not taken for a new flow.
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

// idlest is the active flow that has been idle longest, among the first few of
// the queue. Those that had packets since they came into it get another turn.
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
