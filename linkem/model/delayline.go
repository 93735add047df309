package model

// delayLine is a binary heap of the frames in flight, ordered by departure time. Frames with the same departure time
// leave in the order in which they were added.
type delayLine struct {
	entries []delayed
	entered uint64
}

type delayed struct {
	release int64 // ns
	order   uint64
	frame   *Frame
}

func (d delayed) before(other delayed) bool {
	return d.release < other.release || d.release == other.release && d.order < other.order
}

func (l *delayLine) len() int { return len(l.entries) }

// next returns the earliest departure. Call it only if len() > 0.
func (l *delayLine) next() int64 { return l.entries[0].release }

func (l *delayLine) push(release int64, f *Frame) {
	l.entries = append(l.entries, delayed{release, l.entered, f})
	l.entered++
	for i := len(l.entries) - 1; i > 0; {
		parent := (i - 1) / 2
		if !l.entries[i].before(l.entries[parent]) {
			return
		}
		l.entries[i], l.entries[parent] = l.entries[parent], l.entries[i]
		i = parent
	}
}

// pop removes and returns the frame with the earliest departure. Call it only if len() > 0.
func (l *delayLine) pop() *Frame {
	first := l.entries[0].frame
	last := len(l.entries) - 1
	l.entries[0] = l.entries[last]
	l.entries[last] = delayed{}
	l.entries = l.entries[:last]
	for i := 0; ; {
		smallest := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if l.entries[child].before(l.entries[smallest]) {
				smallest = child
			}
		}
		if smallest == i {
			return first
		}
		l.entries[i], l.entries[smallest] = l.entries[smallest], l.entries[i]
		i = smallest
	}
}

// frameQueue is a first-in, first-out queue in a growing ring buffer.
type frameQueue struct {
	ring  []*Frame
	head  int
	count int
}

func (q *frameQueue) push(f *Frame) {
	if q.count == len(q.ring) {
		grown := make([]*Frame, max(64, 2*len(q.ring)))
		for i := range q.count {
			grown[i] = q.ring[(q.head+i)%len(q.ring)]
		}
		q.ring, q.head = grown, 0
	}
	q.ring[(q.head+q.count)%len(q.ring)] = f
	q.count++
}

func (q *frameQueue) pop() *Frame {
	f := q.ring[q.head]
	q.ring[q.head] = nil
	q.head = (q.head + 1) % len(q.ring)
	q.count--
	return f
}
