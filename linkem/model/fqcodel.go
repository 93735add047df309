package model

import "mplab/internal/list"

// Parameters of FQ-CoDel, RFC 8290 §5.2. The quantum is a full-size packet, as there, but in IP bytes.
const (
	fqFlows   = 1024
	fqQuantum = fullPacket
	fqShed    = 64 // maximum number of packets dropped at once if there are too many (§4.1)
)

// fqCodel is FQ-CoDel, RFC 8290. Each flow has a separate queue with CoDel; the queues are served by deficit round
// robin, new flows first. flowOf identifies flows; flows with the same number share a queue.
type fqCodel struct {
	flows   [fqFlows]flowQueue
	new     flowList
	old     flowList
	law     codel        // initial state of a flow
	drop    func(*Frame) // for drops by CoDel
	discard func(*Frame) // for drops because there are too many packets
	count   int
	size    int // in bytes
}

// flowQueue is the queue of one flow.
type flowQueue struct {
	dropTail
	law    codel
	credit int  // bytes that it may still send in this round
	listed bool // in one of the lists
	list.Links[flowQueue]
}

// flowList lists flows in the order of their service.
type flowList = list.List[flowQueue, *flowQueue]

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
		q.new.PushBack(flow)
	}
}

// pop implements RFC 8290 §4.2.
func (q *fqCodel) pop(now int64) *Frame {
	dropped := func(f *Frame) {
		q.forget(f)
		q.drop(f)
	}
	for {
		from := &q.new
		if from.Len() == 0 {
			from = &q.old
		}
		flow := from.Front()
		if flow == nil {
			return nil
		}
		if flow.credit <= 0 {
			flow.credit += fqQuantum
			from.Remove(flow)
			q.old.PushBack(flow)
			continue
		}
		f := flow.law.pop(now, &flow.dropTail, dropped)
		if f != nil {
			q.forget(f)
			flow.credit -= f.Bytes
			return f
		}
		from.Remove(flow)
		// An empty new flow moves to the old list. Otherwise it could starve old flows by returning immediately.
		if from == &q.new && q.old.Len() > 0 {
			q.old.PushBack(flow)
		} else {
			flow.listed = false
		}
	}
}

func (q *fqCodel) forget(f *Frame) {
	q.count--
	q.size -= f.Bytes
}

// shed drops half of the bytes of the largest flow, from its head (RFC 8290 §4.1).
func (q *fqCodel) shed() {
	fattest := &q.flows[0]
	for _, flows := range []*flowList{&q.new, &q.old} {
		for flow := flows.Front(); flow != nil; flow = flows.Next(flow) {
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
	q.new, q.old, q.count, q.size = flowList{}, flowList{}, 0, 0
	return frames
}

func (q *fqCodel) packets() int { return q.count }

func (q *fqCodel) bytes() int { return q.size }
