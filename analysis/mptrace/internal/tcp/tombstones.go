package tcp

// tombstones remembers the 4-tuples of closed flows that were forgotten, so
// that their late packets do not start new flows. Two 4-tuples with the same
// hash of 64 bits are taken for one.
type tombstones struct {
	times map[uint64]int64 // hash → time of the last packet
	order []tombstone      // from index oldest on; may contain outdated ones
	head  int
}

type tombstone struct {
	hash   uint64
	timeNS int64
}

func (s *tombstones) add(hash uint64, timeNS int64) {
	if s.times == nil {
		s.times = make(map[uint64]int64)
	}
	s.times[hash] = timeNS
	if len(s.order) == cap(s.order) {
		s.skip()
		if s.head > len(s.order)/2 {
			s.order = s.order[:copy(s.order, s.order[s.head:])]
			s.head = 0
		}
	}
	s.order = append(s.order, tombstone{hash, timeNS})
}

func (s *tombstones) has(hash uint64) bool {
	_, ok := s.times[hash]
	return ok
}

func (s *tombstones) remove(hash uint64) { delete(s.times, hash) }

// skip skips outdated entries.
func (s *tombstones) skip() {
	for s.head < len(s.order) {
		t := s.order[s.head]
		if timeNS, ok := s.times[t.hash]; ok && timeNS == t.timeNS {
			return
		}
		s.head++
	}
}

// oldest returns the oldest tombstone; there must be one.
func (s *tombstones) oldest() tombstone {
	s.skip()
	return s.order[s.head]
}

// expire removes the oldest ones whose last packet was before a time.
func (s *tombstones) expire(beforeNS int64) {
	for len(s.times) > 0 && s.oldest().timeNS <= beforeNS {
		s.remove(s.oldest().hash)
	}
}
