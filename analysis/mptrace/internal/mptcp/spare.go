package mptcp

// freeList is memory of ended connections that waits to be used again. In a flood
// each new connection ends another one: without this, most of the time would
// be spent on getting and collecting their memory.
type freeList[T any] []*T

// maxSpare is how many of a kind wait at most.
const maxSpare = 256

// get returns a zero value.
func (s *freeList[T]) get() *T {
	n := len(*s)
	if n == 0 {
		return new(T)
	}
	t := (*s)[n-1]
	*s = (*s)[:n-1]
	return t
}

// put takes one back to which nothing points any more; it may be nil.
func (s *freeList[T]) put(t *T) {
	if t != nil && len(*s) < maxSpare {
		var zero T
		*t = zero
		*s = append(*s, t)
	}
}

// eventSlices are empty slices of events that wait to be used again.
type eventSlices [][]event

// get returns an empty slice, used before or with space for n events.
func (r *eventSlices) get(n int) []event {
	last := len(*r) - 1
	if last < 0 {
		return make([]event, 0, n)
	}
	slice := (*r)[last]
	*r = (*r)[:last]
	return slice
}

// put takes a slice back.
func (r *eventSlices) put(slice []event) {
	if slice != nil && len(*r) < maxSpare {
		*r = append(*r, slice[:0])
	}
}

// spares are those of an engine.
type spares struct {
	conns  freeList[Conn]
	multis freeList[multi]
	joins  freeList[joinState]
	totals freeList[totals]
	data   freeList[[2]direction]
	halves freeList[half]
	few    eventSlices // for fewEvents
	events eventSlices // for more
}

// recycle takes back the memory of a connection whose rows are written. That
// of connection and subflow comes from those alone of which one side was heard,
// without payload: observers were told of no more than beginning and end.
func (e *Engine) recycle(c *Conn) {
	e.giveEvents(c)
	e.spare.totals.put(c.totals)
	c.totals = nil
	for _, s := range c.Subs {
		for _, h := range s.half {
			e.spare.halves.put(h)
		}
		s.half = [2]*half{}
	}
	if c.multi != nil {
		e.spare.data.put(c.multi.data)
		c.multi.data = nil
	}
	s := &c.first
	up, down := &s.side[Up], &s.side[Down]
	if c.made > 1 || up.carried || down.carried || up.heardNS != 0 && down.heardNS != 0 {
		return
	}
	e.spare.multis.put(c.multi)
	e.spare.joins.put(s.joined)
	e.spare.conns.put(c)
}
