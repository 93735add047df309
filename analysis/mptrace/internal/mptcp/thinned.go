package mptcp

// thinned keeps every first, second, fourth, … of a sequence of values, so
// that the kept ones spread evenly over it.
type thinned[T any] struct {
	values []T
	seen   int64
	shift  uint8 // every 1<<shift-th is kept
}

// add takes the next value; with limit ≥ 1 at most 2·limit are kept, and at
// least limit once there were so many.
func (t *thinned[T]) add(v T, limit int) {
	if t.seen&(1<<t.shift-1) == 0 {
		if limit > 0 && len(t.values) >= 2*limit {
			t.halve()
		}
		if t.seen&(1<<t.shift-1) == 0 {
			t.values = append(t.values, v)
		}
	}
	t.seen++
}

func (t *thinned[T]) halve() {
	n := 0
	for i := 0; i < len(t.values); i += 2 {
		t.values[n] = t.values[i]
		n++
	}
	t.values = t.values[:n]
	t.shift++
}

// weight is how many values the i-th kept one stands for: itself and those
// that were left out behind it. The weights sum up to all that were seen.
func (t *thinned[T]) weight(i int) int32 {
	return int32(min(int64(1)<<t.shift, t.seen-int64(i)<<t.shift))
}
