package model

// Parameters of FQ-CoDel, RFC 8290 §5.2. The quantum is a packet of full size, as there, but in IP bytes.
const (
	fqFlows   = 1024
	fqQuantum = fullPacket
	fqShed    = 64 // packets dropped at once when there are too many, at most (§4.1)
)

// fqCodel is FQ-CoDel, RFC 8290: flows have queues of their own, each under CoDel, and take turns by deficit round robin;
// a flow that did not wait goes before those that do. Flows are told apart by flowOf; flows of one number share a queue.
type fqCodel struct {
	flows   [fqFlows]flowQueue
	new     flowList
	old     flowList
	law     codel        // of a fresh flow
	drop    func(*Frame) // by CoDel
	discard func(*Frame) // because there are too many
	count   int
	size    int // bytes
}

// flowQueue is the queue of one flow.
type flowQueue struct {
	dropTail
	law    codel
	credit int  // bytes that it may still send in this turn
	listed bool // in one of the lists
}

// flowList is a list of flows that have a turn to come, first in first out.
type flowList struct{ flows []*flowQueue }

func (l *flowList) empty() bool { return len(l.flows) == 0 }

func (l *flowList) first() *flowQueue { return l.flows[0] }

func (l *flowList) append(flow *flowQueue) { l.flows = append(l.flows, flow) }

func (l *flowList) takeFirst() *flowQueue {
	flow := l.flows[0]
	l.flows = append(l.flows[:0], l.flows[1:]...)
	return flow
}

func newFqCodel(law codel, drop, discard func(*Frame)) *fqCodel {
	q := &fqCodel{law: law, drop: drop, discard: discard}
	for i := range q.flows {
		q.flows[i].law = law
	}
	return q
}

func (q *fqCodel) push(f *Frame) {
	flow := &q.flows[flowOf(f)%fqFlows]
	flow.push(f)
	q.count++
	q.size += f.Bytes
	if !flow.listed {
		flow.listed = true
		flow.credit = fqQuantum
		q.new.append(flow)
	}
}

// pop is RFC 8290 §4.2.
func (q *fqCodel) pop(now int64) *Frame {
	dropped := func(f *Frame) {
		q.forget(f)
		q.drop(f)
	}
	for {
		list := &q.new
		if list.empty() {
			if list = &q.old; list.empty() {
				return nil
			}
		}
		flow := list.first()
		if flow.credit <= 0 {
			flow.credit += fqQuantum
			q.old.append(list.takeFirst())
			continue
		}
		f := flow.law.pop(now, &flow.dropTail, dropped)
		if f != nil {
			q.forget(f)
			flow.credit -= f.Bytes
			return f
		}
		list.takeFirst()
		// A new flow that is empty goes through the old ones, or it could starve them by coming back at once.
		if list == &q.new && !q.old.empty() {
			q.old.append(flow)
		} else {
			flow.listed = false
		}
	}
}

func (q *fqCodel) forget(f *Frame) {
	q.count--
	q.size -= f.Bytes
}

// shed drops half of what the flow with the most bytes holds, from its head (RFC 8290 §4.1).
func (q *fqCodel) shed() {
	fattest := &q.flows[0]
	for _, list := range []*flowList{&q.new, &q.old} {
		for _, flow := range list.flows {
			if flow.bytes() > fattest.bytes() {
				fattest = flow
			}
		}
	}
	half := fattest.bytes() / 2
	for n := 0; n < fqShed && fattest.packets() > 0 && (n == 0 || fattest.bytes() > half); n++ {
		f := fattest.dropTail.pop(0)
		q.forget(f)
		q.discard(f)
	}
}

func (q *fqCodel) drain() (frames []*Frame) {
	for i := range q.flows {
		flow := &q.flows[i]
		frames = append(frames, flow.drain()...)
		flow.listed = false
	}
	q.new.flows, q.old.flows, q.count, q.size = nil, nil, 0, 0
	return frames
}

func (q *fqCodel) packets() int { return q.count }

func (q *fqCodel) bytes() int { return q.size }
