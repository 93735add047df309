package mptcp

import (
	"cmp"
	"math"
	"slices"
)

const (
	// patienceNS is how long an MPTCP connection without subflows waits for
	// the next one: a handover may break before it makes.
	patienceNS = 60e9
	// maxWaiting bounds the connections that wait.
	maxWaiting = 1024
	// maxSubs is how many subflows a connection holds before those that end
	// are written and forgotten at once.
	maxSubs = 64
)

// endSub takes the end of a subflow's flow.
func (e *Engine) endSub(s *Sub) {
	c := s.Conn
	if s.ended {
		return
	}
	s.ended, s.opened = true, s.Flow.Established()
	s.Flow.Owner = nil
	c.live--
	if c.live == 0 {
		e.endOrWait(c)
	} else if len(c.Subs) > maxSubs && s != &c.first {
		e.settleSub(c, s)
		e.writeSub(s)
		s.half = [2]*half{}
		c.Subs = slices.DeleteFunc(c.Subs, func(other *Sub) bool { return other == s })
	}
}

// endOrWait takes a connection without live subflows.
func (e *Engine) endOrWait(c *Conn) {
	if !c.mayGoOn() || e.nowNS-c.lastNS >= patienceNS {
		e.endConn(c)
		return
	}
	if e.waiting.len == maxWaiting {
		e.missed++
		oldest := e.waiting.head
		e.waiting.remove(oldest)
		e.endConn(oldest)
	}
	e.waiting.push(c)
	e.wakeNS = min(e.wakeNS, c.lastNS+patienceNS)
}

// mayGoOn says whether another subflow can still join.
func (c *Conn) mayGoOn() bool {
	return !c.plain && c.fallback == noNote && !c.dataClosed() && slices.ContainsFunc(c.Subs, (*Sub).established)
}

// revive takes a connection back from those that wait.
func (e *Engine) revive(c *Conn) {
	if c.live == 0 && c.made > 0 {
		e.waiting.remove(c)
	}
}

// wake ends the connections that waited long enough.
func (e *Engine) wake() {
	e.endWaiting(func(c *Conn) bool { return e.nowNS-c.lastNS >= patienceNS })
}

// endWaiting ends those of the waiting connections that are done, in the order
// of their numbers.
func (e *Engine) endWaiting(done func(*Conn) bool) {
	var over []*Conn
	e.wakeNS = math.MaxInt64
	for c := e.waiting.head; c != nil; c = c.next {
		if done(c) {
			over = append(over, c)
		} else {
			e.wakeNS = min(e.wakeNS, c.lastNS+patienceNS)
		}
	}
	slices.SortFunc(over, func(a, b *Conn) int { return cmp.Compare(a.ID, b.ID) })
	for _, c := range over {
		e.waiting.remove(c)
		e.endConn(c)
	}
}

// queue is a list of connections in the order in which they came.
type queue struct {
	head, tail *Conn
	len        int
}

func (q *queue) push(c *Conn) {
	c.prev, c.next = q.tail, nil
	if q.tail == nil {
		q.head = c
	} else {
		q.tail.next = c
	}
	q.tail = c
	q.len++
}

func (q *queue) remove(c *Conn) {
	if c.prev == nil {
		q.head = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		q.tail = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.prev, c.next = nil, nil
	q.len--
}

// endConn writes what is left to write of a connection and forgets it.
func (e *Engine) endConn(c *Conn) {
	e.forgetTokens(c)
	e.concludeFallback(c)
	for _, s := range c.Subs {
		e.settleSub(c, s)
	}
	e.handovers(c)
	if c.payload != nil {
		c.payload.End()
	}
	for _, s := range c.Subs {
		e.writeSub(s)
	}
	e.writeConn(c)
	e.recycle(c)
}
