package mptcp

import (
	"slices"
	"sort"
)

const (
	// maxUnacked is the maximum number of segments of a subflow that wait for
	// their DATA_ACK.
	maxUnacked = 1 << 14
	// maxRuns bounds the runs that a subflow remembers of data that was
	// acknowledged, or that it was not the first to carry. At least half as
	// many are remembered.
	maxRuns = 1 << 12
	// fewSegments is the number of segments below which acknowledged ones are
	// kept.
	fewSegments = 64
	// maxRunNS is the maximum duration of a run, so that the time of each of
	// its bytes is known precisely enough.
	maxRunNS = 100e6
)

// record is a range of data that a subflow carried in one segment or in a run
// of consecutive segments.
type record struct {
	lo, hi        uint64
	timeNS, endNS int64 // of the first and the last segment
}

// at returns the approximate time when the subflow carried a byte of the
// record.
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

// sent remembers the data that a subflow carried in one direction.
type sent struct {
	segments []segment // new data, ascending; those before index acked have their DATA_ACK
	room     int       // number of segments at which acknowledged ones are converted into runs
	acked    int
	runs     []record // older new data, and data that others had carried before; ascending, disjoint
	lostNS   int64    // time of the latest forgotten run
}

// waiting reports whether a segment waits for its DATA_ACK.
func (s *sent) waiting() bool { return s.acked < len(s.segments) }

// add remembers new data, most of which arrives in ascending order.
func (s *sent) add(lo, hi uint64, timeNS int64) {
	if len(s.segments) >= s.room {
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

// makeRoom converts segments into runs: the acknowledged ones, and the older
// half of the others if there are too many.
func (s *sent) makeRoom() {
	drop := s.acked
	if n := len(s.segments) - s.acked; n >= maxUnacked {
		drop += n / 2
	}
	if drop < len(s.segments)/2 || len(s.segments) < fewSegments {
		s.room = max(fewSegments, 2*s.room)
		return
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
		if n >= maxRuns {
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

// segmentAfter returns the index of the first segment that ends after lo.
func segmentAfter(segments []segment, lo uint64) int {
	return sort.Search(len(segments), func(i int) bool { return segments[i].hi > lo })
}

// runAfter returns the index of the first run that ends after lo.
func runAfter(runs []record, lo uint64) int {
	return sort.Search(len(runs), func(i int) bool { return runs[i].hi > lo })
}
