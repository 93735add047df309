package interval

import (
	"math/rand/v2"
	"testing"
)

// TestAgainstBitmap compares a set with a bitmap.
func TestAgainstBitmap(t *testing.T) {
	const size = 300
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var set Set
		var truth [size]bool
		for range 100 {
			lo := random.Uint64N(size)
			hi := lo + random.Uint64N(min(40, size-lo)+1)
			var fresh, held uint64
			for i := lo; i < hi; i++ {
				if truth[i] {
					held++
				} else {
					fresh++
				}
			}
			checkParts(t, &set, lo, hi, fresh, held)
			remove := random.IntN(5) == 0
			if remove {
				set.Remove(lo, hi)
			} else if got := set.Add(lo, hi); got != fresh {
				t.Fatalf("Add(%d, %d) = %d, want %d", lo, hi, got, fresh)
			}
			for i := lo; i < hi; i++ {
				truth[i] = !remove
			}
			checkWhole(t, &set, truth[:])
		}
	}
}

func checkParts(t *testing.T, set *Set, lo, hi, fresh, held uint64) {
	t.Helper()
	var gaps, parts uint64
	for _, s := range set.New(lo, hi, nil) {
		gaps += s.Len()
	}
	for _, s := range set.In(lo, hi, nil) {
		parts += s.Len()
	}
	if gaps != fresh || parts != held || set.Overlap(lo, hi) != held {
		t.Fatalf("[%d, %d): %d new, %d in, %d overlap; want %d and %d", lo, hi, gaps, parts, set.Overlap(lo, hi), fresh, held)
	}
}

func checkWhole(t *testing.T, set *Set, truth []bool) {
	t.Helper()
	var bytes, spans uint64
	for i, in := range truth {
		if in {
			bytes++
			if i == 0 || !truth[i-1] {
				spans++
			}
		}
	}
	if set.Bytes() != bytes || uint64(len(set.Spans())) != spans {
		t.Fatalf("%d bytes in %d spans, want %d in %d: %v", set.Bytes(), len(set.Spans()), bytes, spans, set.Spans())
	}
}

func TestInOrderTakesNoList(t *testing.T) {
	if n := testing.AllocsPerRun(10, func() {
		var set Set
		for i := range uint64(100) {
			set.Add(10+i, 11+i)
			if !set.Extend(11+i, 12+i) || set.Extend(5, 6) || set.Bytes() != i+2 || set.Top() != (Span{10, i + 12}) || set.First().Hi != i+12 {
				t.Fatalf("%+v", set)
			}
			set.Remove(11+i, 12+i)
		}
	}); n > 1 {
		t.Errorf("%g allocations", n)
	}
}

func TestBelow(t *testing.T) {
	var set Set
	set.Add(0, 10)
	set.Add(20, 30)
	set.Add(40, 50)
	for _, c := range []struct{ lo, bytes, floor uint64 }{{5, 25, 10}, {25, 15, 30}, {40, 10, 50}, {60, 0, 0}} {
		if set.Below(c.lo); set.Bytes() != c.bytes || set.First().Hi != c.floor {
			t.Errorf("below %d: %d bytes, floor %d, want %d and %d", c.lo, set.Bytes(), set.First().Hi, c.bytes, c.floor)
		}
	}
	if set.Add(0, 3) != 3 || len(set.Spans()) != 1 {
		t.Error("an emptied set is not empty")
	}
}

func TestMemoryIsBounded(t *testing.T) {
	var set Set
	for i := range uint64(2 * MaxSpans) {
		set.Add(2*i, 2*i+1)
	}
	if len(set.Spans()) > MaxSpans || set.Bytes() != 2*MaxSpans || set.Filled() == 0 {
		t.Errorf("%d spans, %d bytes, %d filled", len(set.Spans()), set.Bytes(), set.Filled())
	}
	if set.Add(1, 2) != 0 {
		t.Error("a filled gap is new again")
	}
}

func TestClone(t *testing.T) {
	var set Set
	set.Add(0, 10)
	other := set.Clone()
	other.Add(10, 20)
	if set.Bytes() != 10 || other.Bytes() != 20 {
		t.Errorf("%d, %d", set.Bytes(), other.Bytes())
	}
}
