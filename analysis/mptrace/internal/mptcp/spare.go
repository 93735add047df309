package mptcp

// freeList holds memory of ended connections for reuse. In a flood, each new
// connection ends another one; without free lists, most of the time would be
// spent on allocation and garbage collection.
type freeList[T any] []*T

// maxSpare is the maximum length of a free list.
const maxSpare = 1024

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

// put adds a value for reuse. There must be no other reference to it; it may be
// nil.
func (s *freeList[T]) put(t *T) {
	if t != nil && len(*s) < maxSpare {
		var zero T
		*t = zero
		*s = append(*s, t)
	}
}

// eventSlices is a free list of event slices.
type eventSlices [][]event

// get returns an empty slice: a reused one, or a new one with capacity for n
// events.
func (r *eventSlices) get(n int) []event {
	last := len(*r) - 1
	if last < 0 {
		return make([]event, 0, n)
	}
	slice := (*r)[last]
	*r = (*r)[:last]
	return slice
}

// put adds a slice for reuse.
func (r *eventSlices) put(slice []event) {
	if slice != nil && len(*r) < maxSpare {
		*r = append(*r, slice[:0])
	}
}

// spares holds the free lists of an engine.
type spares struct {
	conns  freeList[Conn]
	multis freeList[multi]
	joins  freeList[joinState]
	totals freeList[totals]
	data   []*[2]direction
	halves []*half
	few    eventSlices // with capacity fewEvents
	events eventSlices // with a larger capacity
}

// shortList is the maximum length of the lists that spares keep.
const shortList = 256

// emptied returns an empty list that uses the memory of a list, unless it is
// long.
func emptied[T any](list []T) []T {
	if cap(list) > shortList {
		return nil
	}
	return list[:0]
}

func (s *spares) getHalf() *half {
	n := len(s.halves)
	if n == 0 {
		return new(half)
	}
	h := s.halves[n-1]
	s.halves = s.halves[:n-1]
	return h
}

func (s *spares) putHalf(h *half) {
	if h == nil || len(s.halves) >= maxSpare {
		return
	}
	*h = half{maps: emptied(h.maps), sent: sent{segments: emptied(h.sent.segments), runs: emptied(h.sent.runs)}}
	s.halves = append(s.halves, h)
}

func (s *spares) getData() *[2]direction {
	n := len(s.data)
	if n == 0 {
		return new([2]direction)
	}
	d := s.data[n-1]
	s.data = s.data[:n-1]
	return d
}

func (s *spares) putData(data *[2]direction) {
	if data == nil || len(s.data) >= maxSpare {
		return
	}
	for dir := range data {
		d := &data[dir]
		clear(d.carriers[:cap(d.carriers)])
		*d = direction{
			holes: holes{spans: emptied(d.holes.spans)}, below: holes{spans: emptied(d.below.spans)},
			carriers: emptied(d.carriers), rtt: d.rtt.Emptied(), ackSizes: d.ackSizes.Emptied(),
			bursts: bursts{kept: thinned[burstRow]{values: emptied(d.bursts.kept.values)}},
		}
	}
	s.data = append(s.data, data)
}

// recycle reuses the memory of a connection whose rows are written. Conn and
// Sub are reused only if just one side was heard, without payload: then
// observers received only their start and end, and hold no reference.
func (e *Engine) recycle(c *Conn) {
	e.giveEvents(c)
	e.spare.totals.put(c.totals)
	c.totals = nil
	for _, s := range c.Subs {
		for _, h := range s.half {
			e.spare.putHalf(h)
		}
		s.half = [2]*half{}
		if e.options.Release != nil {
			e.options.Release(s.Flow)
		}
	}
	if c.multi != nil {
		e.spare.putData(c.multi.data)
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
