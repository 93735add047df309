package mptcp

import (
	"cmp"
	"math"
	"slices"
)

const (
	// patienceNS is how long an MPTCP connection without subflows waits for the
	// next one: a handover may close the old subflow before it opens the new
	// one.
	patienceNS = 60e9
	// maxWaiting is the maximum number of waiting connections.
	maxWaiting = 1024
	// maxSubs is the maximum number of subflows in memory: above it, a subflow
	// that ends is written and forgotten immediately.
	maxSubs = 64
)

// endSub processes the end of a subflow's flow.
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

// endOrWait handles a connection without live subflows.
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

// mayGoOn reports whether another subflow can still join.
func (c *Conn) mayGoOn() bool {
	return !c.plain && c.fallback == noNote && !c.dataClosed() && slices.ContainsFunc(c.Subs, (*Sub).established)
}

// revive removes a connection from the waiting queue.
func (e *Engine) revive(c *Conn) {
	if c.live == 0 && c.made > 0 {
		e.waiting.remove(c)
	}
}

// wake ends the connections that have waited for patienceNS.
func (e *Engine) wake() {
	e.endWaiting(func(c *Conn) bool { return e.nowNS-c.lastNS >= patienceNS })
}

// endWaiting ends the waiting connections for which done returns true, in the
// order of their numbers.
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

// queue is a linked list of connections in the order of arrival.
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

// endConn writes the remaining rows of a connection and forgets it.
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
