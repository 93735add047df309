package mptcp

// spare is memory of ended connections that waits to be used again. In a flood
// each new connection ends another one: without this, most of the time would
// be spent on getting and collecting their memory.
type spare[T any] []*T

// maxSpare is how many of a kind wait at most.
const maxSpare = 256

// take returns a zero value.
func (s *spare[T]) take() *T {
	n := len(*s)
	if n == 0 {
		return new(T)
	}
	t := (*s)[n-1]
	*s = (*s)[:n-1]
	return t
}

// give takes one back to which nothing points any more; it may be nil.
func (s *spare[T]) give(t *T) {
	if t != nil && len(*s) < maxSpare {
		var zero T
		*t = zero
		*s = append(*s, t)
	}
}

// rooms is spare room for events.
type rooms [][]event

// take returns room, as it was used before or for n events.
func (r *rooms) take(n int) []event {
	last := len(*r) - 1
	if last < 0 {
		return make([]event, 0, n)
	}
	room := (*r)[last]
	*r = (*r)[:last]
	return room
}

// give takes room back.
func (r *rooms) give(room []event) {
	if room != nil && len(*r) < maxSpare {
		*r = append(*r, room[:0])
	}
}

// spares are those of an engine.
type spares struct {
	conns  spare[Conn]
	multis spare[multi]
	joins  spare[joinState]
	totals spare[totals]
	data   spare[[2]direction]
	halves spare[half]
	few    rooms // for fewEvents
	events rooms // for more
}

// recycle takes back the memory of a connection whose rows are written. That
// of connection and subflow comes from those alone of which one side was heard,
// without payload: observers were told of no more than beginning and end.
func (e *Engine) recycle(c *Conn) {
	e.giveEvents(c)
	e.spare.totals.give(c.totals)
	c.totals = nil
	for _, s := range c.Subs {
		for _, h := range s.half {
			e.spare.halves.give(h)
		}
		s.half = [2]*half{}
	}
	if c.multi != nil {
		e.spare.data.give(c.multi.data)
		c.multi.data = nil
	}
	s := &c.first
	up, down := &s.side[Up], &s.side[Down]
	if c.made > 1 || up.carried || down.carried || up.heardNS != 0 && down.heardNS != 0 {
		return
	}
	e.spare.multis.give(c.multi)
	e.spare.joins.give(s.joined)
	e.spare.conns.give(c)
}
