package model

import (
	"cmp"
	"slices"
)

// Queue disciplines.
const (
	DropTail = "drop-tail"
	Codel    = "codel"
	FqCodel  = "fq_codel"
)

// discipline holds the packets that wait for the serialiser, and decides which is next and which are dropped.
type discipline interface {
	push(f *Frame)
	// pop gives the next packet to serialise at the time now, and may drop others on the way; nil when none is left.
	pop(now int64) *Frame
	// drain takes everything out, in no special order.
	drain() []*Frame
	packets() int
	bytes() int
}

// shedder is a discipline that makes room for a new packet by dropping others; the others refuse the new one.
type shedder interface{ shed() }

// newDiscipline makes the empty queue that is asked for. What CoDel drops goes to drop, what a full queue drops to discard.
func newDiscipline(queue Queue, drop, discard func(*Frame)) discipline {
	law := codel{target: nanoseconds(queue.TargetMs), interval: nanoseconds(queue.IntervalMs)}
	switch queue.Discipline {
	case Codel:
		return &codelQueue{law: law, drop: drop}
	case FqCodel:
		return newFqCodel(law, drop, discard)
	default:
		return &dropTail{}
	}
}

// move puts everything from one queue into another, in the order in which it came.
func move(from, to discipline) {
	frames := from.drain()
	slices.SortFunc(frames, func(a, b *Frame) int { return cmp.Compare(a.order, b.order) })
	for _, f := range frames {
		to.push(f)
	}
}

// dropTail is a first-in first-out queue.
type dropTail struct {
	queue frameQueue
	size  int // bytes
}

func (d *dropTail) push(f *Frame) {
	d.queue.push(f)
	d.size += f.Bytes
}

func (d *dropTail) pop(int64) *Frame {
	if d.queue.count == 0 {
		return nil
	}
	f := d.queue.pop()
	d.size -= f.Bytes
	return f
}

func (d *dropTail) drain() (frames []*Frame) {
	for d.queue.count > 0 {
		frames = append(frames, d.pop(0))
	}
	return frames
}

func (d *dropTail) packets() int { return d.queue.count }

func (d *dropTail) bytes() int { return d.size }
