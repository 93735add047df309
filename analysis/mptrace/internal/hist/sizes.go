package hist

import "slices"

// MaxSizes is the maximum number of distinct sizes in a [Sizes]. Beyond it,
// each size is rounded down to the smallest number of its class, which is 1/64
// wide.
const MaxSizes = 4096

// Sizes counts the occurrences of each size.
type Sizes struct {
	last   uint64 // the current size; it occurred run times in a row
	run    int64
	slots  []slot // hash table; its length is a power of two
	used   int
	coarse bool // sizes are rounded to classes
}

type slot struct {
	size  uint64
	count int64 // 0: the slot is free
}

// Emptied returns an empty count that uses the memory of this one.
func (s *Sizes) Emptied() Sizes {
	if len(s.slots) > keptLists {
		return Sizes{}
	}
	clear(s.slots)
	return Sizes{slots: s.slots}
}

// Add counts a size.
func (s *Sizes) Add(size uint64) {
	if size == s.last {
		s.run++
		return
	}
	s.turn(size)
}

// turn stores the current run and starts another one.
func (s *Sizes) turn(size uint64) {
	if s.run > 0 {
		s.store(s.last, s.run)
	}
	s.last, s.run = size, 1
}

func (s *Sizes) store(size uint64, count int64) {
	if s.coarse {
		size = lower(class(size))
	}
	if 2*s.used >= len(s.slots) {
		s.grow()
	}
	at := s.find(size)
	if at.count == 0 {
		if s.used == MaxSizes {
			s.coarsen()
			s.store(size, count)
			return
		}
		at.size = size
		s.used++
	}
	at.count += count
}

// find returns the slot of a size, or the free slot where it belongs.
func (s *Sizes) find(size uint64) *slot {
	mask := len(s.slots) - 1
	for i := int(size*0x9e3779b97f4a7c15>>40) & mask; ; i = (i + 1) & mask {
		if at := &s.slots[i]; at.count == 0 || at.size == size {
			return at
		}
	}
}

func (s *Sizes) grow() {
	old := s.slots
	s.slots = make([]slot, max(8, 2*len(old)))
	for _, o := range old {
		if o.count > 0 {
			*s.find(o.size) = o
		}
	}
}

// coarsen rounds all sizes down to their classes; there are fewer classes than
// MaxSizes.
func (s *Sizes) coarsen() {
	old := s.slots
	s.slots, s.used, s.coarse = make([]slot, len(old)), 0, true
	for _, o := range old {
		if o.count > 0 {
			s.store(o.size, o.count)
		}
	}
}

// Each calls each with every size and its count, in ascending order of size.
func (s *Sizes) Each(each func(size, count int64)) {
	s.turn(0)
	s.run = 0
	var few [64]slot // avoids an allocation
	sorted := few[:0]
	for _, o := range s.slots {
		if o.count > 0 {
			sorted = append(sorted, o)
		}
	}
	slices.SortFunc(sorted, func(a, b slot) int {
		if a.size < b.size {
			return -1
		}
		return 1
	})
	for _, o := range sorted {
		each(int64(o.size), o.count)
	}
}
