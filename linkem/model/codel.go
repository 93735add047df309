package model

import "math"

// Defaults of CoDel: RFC 8289 §5, and the limits of codel and fq_codel in Linux.
const (
	DefaultTargetMs       = 5
	DefaultIntervalMs     = 100
	DefaultCodelPackets   = 1000
	DefaultFqCodelPackets = 10_240
)

// fullPacket is the IP bytes of a full-size packet. CoDel ignores a standing queue of at most one (RFC 8289 §5).
const fullPacket = 1500

// codel is the control law of RFC 8289 §5. When the sojourn time has not been below target for an interval, it drops
// packets at the head of the queue, at a rate that increases with the square root of the number of drops. Times are in
// ns.
type codel struct {
	target, interval int64

	above      bool  // the sojourn time is at or above target
	firstAbove int64 // one interval after it rose above target
	dropping   bool
	dropNext   int64 // time of the next drop, if dropping
	count      int   // packets dropped in this dropping state
	lastCount  int   // count at the start of this dropping state
}

// pop returns the next packet of a queue at the time now, or nil. It passes the packets that the control law drops to
// drop.
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
		// If the last dropping state ended recently, start with its rate.
		since := c.count - c.lastCount
		if c.count = 1; since > 1 && now-c.dropNext < 16*c.interval {
			c.count = since
		}
		c.dropNext = c.next(now)
		c.lastCount = c.count
	}
	return f
}

// judge takes the first packet and reports whether it may be dropped: the sojourn time has been at least target for an
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

// next is the control law: the time of the next drop after a drop at the time t.
func (c *codel) next(t int64) int64 {
	return t + int64(math.Round(float64(c.interval)/math.Sqrt(float64(c.count))))
}

// codelQueue is a single queue with CoDel.
type codelQueue struct {
	dropTail
	law  codel
	drop func(*Frame)
}

func (q *codelQueue) pop(now int64) *Frame { return q.law.pop(now, &q.dropTail, q.drop) }
