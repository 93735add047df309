package model

import "math"

// Defaults of CoDel: RFC 8289 §5, and the limits of Linux' codel and fq_codel.
const (
	DefaultTargetMs       = 5
	DefaultIntervalMs     = 100
	DefaultCodelPackets   = 1000
	DefaultFqCodelPackets = 10_240
)

// fullPacket is a packet of full size, IP bytes: a standing queue of no more than one is left alone (RFC 8289 §5).
const fullPacket = 1500

// codel is the control law of RFC 8289 §5: it drops packets at the head of a queue whose sojourn time has not been below
// target for an interval, at a rate that rises with the square root of their number. Times in ns.
type codel struct {
	target, interval int64

	above      bool  // the sojourn time was not below target since
	firstAbove int64 // an interval after it rose above it
	dropping   bool
	dropNext   int64 // with dropping, or shortly after it
	count      int   // packets dropped in this state of dropping
	lastCount  int   // count when it began
}

// pop takes the next packet of a queue at the time now; those that the control law drops it gives to drop. It gives nil
// when none is left.
func (c *codel) pop(now int64, queue *dropTail, drop func(*Frame)) *Frame {
	f, drops := c.judge(now, queue)
	switch {
	case c.dropping:
		if !drops {
			c.dropping = false
		}
		for c.dropping && now >= c.dropNext {
			drop(f)
			c.count++
			if f, drops = c.judge(now, queue); drops {
				c.dropNext = c.next(c.dropNext)
			} else {
				c.dropping = false
			}
		}
	case drops:
		drop(f)
		f, _ = c.judge(now, queue)
		c.dropping = true
		// What controlled the queue a short while ago is a good rate to begin with.
		since := c.count - c.lastCount
		if c.count = 1; since > 1 && now-c.dropNext < 16*c.interval {
			c.count = since
		}
		c.dropNext = c.next(now)
		c.lastCount = c.count
	}
	return f
}

// judge takes the first packet and says whether it may be dropped: the sojourn time has been at least target for an
// interval, and more than one full packet still waits.
func (c *codel) judge(now int64, queue *dropTail) (f *Frame, drops bool) {
	f = queue.pop(now)
	if f == nil || now-f.arrival < c.target || queue.bytes() <= fullPacket {
		c.above = false
		return f, false
	}
	if !c.above {
		c.above, c.firstAbove = true, now+c.interval
		return f, false
	}
	return f, now >= c.firstAbove
}

// next is the control law: when to drop after a drop at the time t.
func (c *codel) next(t int64) int64 {
	return t + int64(math.Round(float64(c.interval)/math.Sqrt(float64(c.count))))
}

// codelQueue is one queue under CoDel.
type codelQueue struct {
	dropTail
	law  codel
	drop func(*Frame)
}

func (q *codelQueue) pop(now int64) *Frame { return q.law.pop(now, &q.dropTail, q.drop) }
