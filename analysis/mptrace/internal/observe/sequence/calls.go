package sequence

import "math"

// call is a stored call of Data or Ack, in 16 bytes. Most connections are small
// and end without a diagram, so their points are built only when they are
// needed.
type call struct {
	sinceNS uint32 // time since the previous call
	at      int32  // offset from the first data of the direction
	size    uint32 // bytes, or window
	sub     uint16
	what    uint8 // fresh, again, reinjected, acked or pause
	dir     uint8
}

const (
	acked = reinjected + 1
	pause = acked + 1 // sinceNS exceeds 32 bits: at holds the upper half, and this is no call
)

// calls holds the stored calls of a small connection, in slabs.
type calls struct {
	timeNS      int64
	last, first *slab
	n           int32 // in all slabs; all but the last are full
	base        [2]uint64
}

type slab struct {
	calls [slabCalls]call
	next  *slab
}

const slabCalls = 31

// mostCalls is the maximum number of stored calls per connection, crowdedCalls
// the maximum of all connections together (16 bytes each).
const (
	mostCalls    = 1 << 10
	crowdedCalls = 1 << 20
)

// pool owns the slabs of all connections.
type pool struct {
	free *slab
	used int // number of calls in use
}

// add stores a call. It returns false if the call does not fit or there are too
// many.
func (s *pool) add(c *calls, timeNS int64, what, dir uint8, at, size uint64, sub int32) bool {
	place := int64(at - c.base[dir])
	if c.n >= mostCalls || s.used >= crowdedCalls || place != int64(int32(place)) || size > math.MaxUint32 || sub > math.MaxUint16 {
		return false
	}
	since := uint64(timeNS - c.timeNS)
	if since > math.MaxUint32 {
		*s.next(c) = call{sinceNS: uint32(since), at: int32(since >> 32), what: pause}
		since = 0
	}
	c.timeNS = timeNS
	*s.next(c) = call{uint32(since), int32(place), uint32(size), uint16(sub), what, dir}
	return true
}

func (s *pool) next(c *calls) *call {
	at := c.n % slabCalls
	if at == 0 {
		s.grow(c)
	}
	c.n++
	s.used++
	return &c.last.calls[at]
}

func (s *pool) grow(c *calls) {
	p := s.slab()
	if c.n == 0 {
		c.first = p
	} else {
		c.last.next = p
	}
	c.last = p
}

func (s *pool) slab() *slab {
	p := s.free
	if p == nil {
		return new(slab)
	}
	s.free, p.next = p.next, nil
	return p
}

// drop forgets the calls.
func (s *pool) drop(c *calls) {
	if c.n == 0 {
		return
	}
	c.last.next, s.free = s.free, c.first
	s.used -= int(c.n)
	c.first, c.last, c.n = nil, nil, 0
}

// each replays the calls in order.
func (c *calls) each(repeat func(what, dir uint8, timeNS int64, at, size uint64, sub int32)) {
	timeNS, left := int64(0), c.n
	for p := c.first; left > 0; p = p.next {
		n := min(left, slabCalls)
		left -= n
		for i := range p.calls[:n] {
			k := &p.calls[i]
			timeNS += int64(k.sinceNS)
			if k.what == pause {
				timeNS += int64(k.at) << 32
				continue
			}
			repeat(k.what, k.dir, timeNS, c.base[k.dir]+uint64(int64(k.at)), uint64(k.size), int32(k.sub))
		}
	}
}
