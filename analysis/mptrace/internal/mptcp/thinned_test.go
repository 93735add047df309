package mptcp

import "testing"

func TestThinnedWeightsSumUp(t *testing.T) {
	for n := range 300 {
		var kept thinned[int]
		for i := range n {
			kept.add(i, 10)
		}
		sum := 0
		for i, v := range kept.values {
			if v != sum {
				t.Fatalf("of %d, value %d stands at the place of %d", n, v, sum)
			}
			sum += int(kept.weight(i))
		}
		if sum != n || len(kept.values) > 20 || n >= 10 && len(kept.values) < 10 {
			t.Errorf("%d values: %d kept, weights sum up to %d", n, len(kept.values), sum)
		}
	}
	var all thinned[int]
	for i := range 5000 {
		all.add(i, -1)
	}
	if len(all.values) != 5000 {
		t.Errorf("%d of 5000 kept", len(all.values))
	}
}
