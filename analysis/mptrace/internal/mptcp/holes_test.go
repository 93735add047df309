package mptcp

import (
	"math/rand/v2"
	"testing"

	"mplab/analysis/mptrace/internal/interval"
)

// TestHolesAgainstBitmap compares holes with a bitmap.
func TestHolesAgainstBitmap(t *testing.T) {
	const size = 400
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var h holes
		var seen [size]bool
		edge := uint64(0)
		for range 60 {
			lo := random.Uint64N(size)
			hi := lo + 1 + random.Uint64N(min(40, size-lo))
			var want, got []interval.Span
			for i := lo; i < min(hi, edge); i++ {
				if !seen[i] {
					if n := len(want); n > 0 && want[n-1].Hi == i {
						want[n-1].Hi++
					} else {
						want = append(want, span(i, i+1))
					}
				}
			}
			if lo < edge {
				got = h.fill(lo, min(hi, edge), nil)
			}
			if lo > edge {
				h.open(edge, lo)
			}
			if len(got) != len(want) {
				t.Fatalf("[%d, %d): %v, want %v", lo, hi, got, want)
			}
			for i := range got {
				if got[i] != want[i] {
					t.Fatalf("[%d, %d): %v, want %v", lo, hi, got, want)
				}
			}
			edge = max(edge, hi)
			var missing uint64
			for i := range edge {
				seen[i] = seen[i] || lo <= i && i < hi
				if !seen[i] {
					missing++
				}
			}
			if h.in(0) != missing {
				t.Fatalf("%d bytes missing, want %d", h.in(0), missing)
			}
		}
	}
}

func TestHolesAreBounded(t *testing.T) {
	var h holes
	for i := range uint64(3 * maxHoles) {
		h.open(2*i, 2*i+1)
	}
	if n := len(h.spans) - h.from; n > maxHoles || h.filled == 0 || h.in(0)+h.filled != 3*maxHoles {
		t.Errorf("%d holes, %d bytes filled, %d missing", n, h.filled, h.in(0))
	}
	if got := h.fill(0, 1, nil); len(got) != 0 {
		t.Errorf("a hole taken as seen is new: %v", got)
	}
}
