package mptcp

import "slices"

const (
	// maxUnacked bounds the segments of a subflow that wait for their DATA_ACK.
	maxUnacked = 1 << 14
	// maxRuns bounds what a subflow remembers of data that was acknowledged, or
	// that it was not the first to carry: at least half as many runs.
	maxRuns = 1 << 12
	// fewSegments are kept without a look at which of them are acknowledged.
	fewSegments = 64
	// maxRunNS is how long a run may last, so that the time of a byte in it is
	// well known.
	maxRunNS = 100e6
)

// record is a range of data that a subflow carried: in one segment, or in a
// run of segments that follow each other.
type record struct {
	lo, hi        uint64
	timeNS, endNS int64 // of the first and the last segment
}

// at is about when the subflow carried a byte of the record.
func (r *record) at(byte uint64) int64 {
	if r.endNS == r.timeNS {
		return r.timeNS
	}
	return r.timeNS + int64(float64(r.endNS-r.timeNS)*float64(byte-r.lo)/float64(r.hi-r.lo))
}

// segment is a range of data that waits for its DATA_ACK.
type segment struct {
	lo, hi uint64
	timeNS int64
}

// sent remembers what data a subflow carried in one direction.
type sent struct {
	segments []segment // new data, ascending; those before acked have their DATA_ACK
	acked    int
	runs     []record // older new data, and copies of what others carried before; ascending, disjoint
	lostNS   int64    // time of the latest run that was forgotten
}

// waiting says whether a segment waits for its DATA_ACK.
func (s *sent) waiting() bool { return s.acked < len(s.segments) }

// add remembers new data. Most of it comes in ascending order.
func (s *sent) add(lo, hi uint64, timeNS int64) {
	if len(s.segments) == cap(s.segments) {
		s.makeRoom()
	}
	if n := len(s.segments); n == 0 || s.segments[n-1].hi <= lo {
		s.segments = append(s.segments, segment{lo, hi, timeNS})
		return
	}
	at := segmentAfter(s.segments, lo)
	s.segments = slices.Insert(s.segments, at, segment{lo, hi, timeNS})
	if at < s.acked {
		s.acked++
	}
}

// makeRoom turns segments into runs: the acknowledged ones, and the older half
// of the others when they are too many.
func (s *sent) makeRoom() {
	drop := s.acked
	if n := len(s.segments) - s.acked; n >= maxUnacked {
		drop += n / 2
	}
	if drop < len(s.segments)/2 || len(s.segments) < fewSegments {
		return // append grows
	}
	run := record{lo: s.segments[0].lo, hi: s.segments[0].lo, timeNS: s.segments[0].timeNS, endNS: s.segments[0].timeNS}
	for i := range s.segments[:drop] {
		next := &s.segments[i]
		if next.lo != run.hi || next.timeNS-run.timeNS > maxRunNS {
			s.remember(run)
			run.lo, run.timeNS = next.lo, next.timeNS
		}
		run.hi, run.endNS = next.hi, next.timeNS
	}
	s.remember(run)
	s.segments = s.segments[:copy(s.segments, s.segments[drop:])]
	s.acked = max(0, s.acked-drop)
}

// remember adds data to the runs.
func (s *sent) remember(run record) {
	if n := len(s.runs); n > 0 {
		last := &s.runs[n-1]
		if last.hi == run.lo && run.endNS-last.timeNS <= maxRunNS {
			last.hi, last.endNS = run.hi, max(run.endNS, last.timeNS)
			return
		}
		if n >= maxRuns && n == cap(s.runs) {
			s.lostNS = max(s.lostNS, s.runs[n-maxRuns/2-1].endNS)
			s.runs = s.runs[:copy(s.runs, s.runs[n-maxRuns/2:])]
		}
	}
	if n := len(s.runs); n == 0 || s.runs[n-1].hi <= run.lo {
		s.runs = append(s.runs, run)
		return
	}
	s.runs = slices.Insert(s.runs, runAfter(s.runs, run.lo), run)
}

// segmentAfter is the index of the first segment that ends behind lo.
func segmentAfter(segments []segment, lo uint64) int {
	a, b := 0, len(segments)
	for a < b {
		if m := int(uint(a+b) / 2); segments[m].hi <= lo {
			a = m + 1
		} else {
			b = m
		}
	}
	return a
}

// runAfter is the index of the first run that ends behind lo.
func runAfter(runs []record, lo uint64) int {
	a, b := 0, len(runs)
	for a < b {
		if m := int(uint(a+b) / 2); runs[m].hi <= lo {
			a = m + 1
		} else {
			b = m
		}
	}
	return a
}
