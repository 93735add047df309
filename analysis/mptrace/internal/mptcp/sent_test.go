package mptcp

import (
	"math/rand/v2"
	"testing"
)

func TestSentStaysInOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var s sent
		for i, b := range random.Perm(300) {
			s.add(uint64(b)*10, uint64(b)*10+10, int64(i))
			if random.IntN(3) == 0 {
				upTo := uint64(random.IntN(3000))
				for s.acked < len(s.segments) && s.segments[s.acked].hi <= upTo {
					s.acked++
				}
			}
		}
		var bytes uint64
		for i, r := range s.segments {
			if i > 0 && s.segments[i-1].hi > r.lo {
				t.Fatalf("%v before %v", s.segments[i-1], r)
			}
			bytes += r.hi - r.lo
		}
		for i, r := range s.runs {
			if i > 0 && s.runs[i-1].hi > r.lo {
				t.Fatalf("%v before %v", s.runs[i-1], r)
			}
			bytes += r.hi - r.lo
		}
		if bytes != 3000 {
			t.Fatalf("%d bytes remembered of 3000", bytes)
		}
	}
}

func TestSentIsBounded(t *testing.T) {
	var s sent
	for i := range uint64(1 << 18) {
		s.add(3*i, 3*i+1, int64(i))
		if i%3 == 0 && i < 1<<17 {
			s.acked = len(s.segments)
		}
	}
	if cap(s.segments) > 3*maxUnacked || len(s.runs) > 2*maxRuns || len(s.runs) < maxRuns/2 || s.lostNS == 0 {
		t.Errorf("%d segments, %d runs, lost until %d", len(s.segments), len(s.runs), s.lostNS)
	}
}

// TestRunKnowsTimes: the time of a byte in a run of segments is close to that of its segment.
func TestRunKnowsTimes(t *testing.T) {
	var s sent
	for i := range uint64(1000) {
		s.remember(record{i * 100, i*100 + 100, int64(i) * 1e6, int64(i) * 1e6})
	}
	for i := range uint64(1000) {
		r := &s.runs[runAfter(s.runs, i*100)]
		if off := r.at(i*100) - int64(i)*1e6; max(off, -off) > 1e6 {
			t.Fatalf("byte %d was carried %d ns late", i*100, off)
		}
	}
	if len(s.runs) != 10 {
		t.Errorf("%d runs", len(s.runs))
	}
}
