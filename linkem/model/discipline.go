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

// discipline holds the packets that wait for the serialiser. It decides which packet is next and which ones are
// dropped.
type discipline interface {
	push(f *Frame)
	// pop returns the next packet to serialise at the time now, or nil. It may drop other packets.
	pop(now int64) *Frame
	// drain removes and returns all packets, in any order.
	drain() []*Frame
	packets() int
	bytes() int
}

// shedder is a discipline that drops queued packets to make room for a new one. Other disciplines refuse the new
// packet.
type shedder interface{ shed() }

// newDiscipline returns an empty queue. drop receives the packets that CoDel drops, discard those that a full queue
// drops.
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

// move moves all packets from one queue to another, in the order of their arrival.
func move(from, to discipline) {
	frames := from.drain()
	slices.SortFunc(frames, func(a, b *Frame) int { return cmp.Compare(a.order, b.order) })
	for _, f := range frames {
		to.push(f)
	}
}

// dropTail is a first-in, first-out queue.
type dropTail struct {
	queue frameQueue
	size  int // in bytes
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
