package mptcp

// thinned keeps every 2^k-th value of a sequence, so that the kept values are
// evenly spaced.
type thinned[T any] struct {
	values []T
	seen   int64
	shift  uint8 // every 1<<shift-th value is kept
}

// add adds a value. With limit ≥ 1 it keeps at most 2·limit values, and at
// least limit once there are that many.
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

// weight returns how many values the i-th kept one represents: itself and the
// dropped ones after it. The sum of all weights is the number of values seen.
func (t *thinned[T]) weight(i int) int32 {
	return int32(min(int64(1)<<t.shift, t.seen-int64(i)<<t.shift))
}
