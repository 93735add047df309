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
	if e.waiting.Len() == maxWaiting {
		e.missed++
		oldest := e.waiting.Front()
		e.waiting.Remove(oldest)
		e.endConn(oldest)
	}
	e.waiting.PushBack(c)
	e.wakeNS = min(e.wakeNS, c.lastNS+patienceNS)
}

// mayGoOn reports whether another subflow can still join.
func (c *Conn) mayGoOn() bool {
	return !c.plain && c.fallback == noNote && !c.dataClosed() && slices.ContainsFunc(c.Subs, (*Sub).established)
}

// revive removes a connection from the waiting queue.
func (e *Engine) revive(c *Conn) {
	if c.live == 0 && c.made > 0 {
		e.waiting.Remove(c)
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
	for c := e.waiting.Front(); c != nil; c = e.waiting.Next(c) {
		if done(c) {
			over = append(over, c)
		} else {
			e.wakeNS = min(e.wakeNS, c.lastNS+patienceNS)
		}
	}
	slices.SortFunc(over, func(a, b *Conn) int { return cmp.Compare(a.ID, b.ID) })
	for _, c := range over {
		e.waiting.Remove(c)
		e.endConn(c)
	}
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
