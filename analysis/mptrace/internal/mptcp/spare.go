package mptcp

// freeList holds memory of ended connections for reuse. In a flood, each new
// connection ends another one; without free lists, most of the time would be
// spent on allocation and garbage collection.
type freeList[T any] []*T

// maxSpare is the maximum length of a free list.
const maxSpare = 256

// get returns a zero value, or an empty one if [freeList.keep] is used.
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
	s.keep(t, func(t *T) { *t = *new(T) })
}

// keep is put for values that keep the memory of their lists: reset empties
// them.
func (s *freeList[T]) keep(t *T, reset func(*T)) {
	if t != nil && len(*s) < maxSpare {
		reset(t)
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
	data   freeList[[2]direction]
	halves freeList[half]
	few    eventSlices // with capacity fewEvents
	events eventSlices // with a larger capacity
}

// shortList is the maximum length of the lists that spares keep.
const shortList = 128

// emptied returns an empty list that uses the memory of a list, unless it is
// long.
func emptied[T any](list []T) []T {
	if cap(list) > shortList {
		return nil
	}
	return list[:0]
}

func (h *half) reset() {
	*h = half{maps: emptied(h.maps), sent: sent{segments: emptied(h.sent.segments), runs: emptied(h.sent.runs)}}
}

func reset(data *[2]direction) {
	for dir := range data {
		d := &data[dir]
		clear(d.carriers[:cap(d.carriers)])
		*d = direction{
			holes: holes{spans: emptied(d.holes.spans)}, below: holes{spans: emptied(d.below.spans)},
			carriers: emptied(d.carriers), rtt: d.rtt.Emptied(), ackSizes: d.ackSizes.Emptied(),
			bursts: bursts{kept: thinned[burstRow]{values: emptied(d.bursts.kept.values)}},
		}
	}
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
			e.spare.halves.keep(h, (*half).reset)
		}
		s.half = [2]*half{}
		if e.options.Release != nil {
			e.options.Release(s.Flow)
		}
	}
	if c.multi != nil {
		e.spare.data.keep(c.multi.data, reset)
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
