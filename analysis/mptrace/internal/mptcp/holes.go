package mptcp

import (
	"slices"
	"sort"

	"mplab/analysis/mptrace/internal/interval"
)

// maxHoles bounds the memory of one direction. Beyond it, the lowest eighth of
// the holes is marked as seen: bytes that arrive there later count as old.
const maxHoles = 1 << 16

// holes are the missing parts of a direction's data below the highest byte
// seen. With two subflows the slower one constantly fills the lowest hole, so
// access to that hole is fast.
type holes struct {
	spans  []interval.Span // ascending; those before index from are filled
	from   int
	filled uint64 // bytes marked as seen to bound memory
}

// open appends a hole above all others.
func (h *holes) open(lo, hi uint64) {
	if len(h.spans) == cap(h.spans) && h.from > len(h.spans)/2 {
		h.spans = h.spans[:copy(h.spans, h.spans[h.from:])]
		h.from = 0
	}
	h.spans = append(h.spans, interval.Span{Lo: lo, Hi: hi})
	h.bound()
}

func (h *holes) bound() {
	if len(h.spans)-h.from > maxHoles {
		for _, s := range h.spans[h.from : h.from+maxHoles/8] {
			h.filled += s.Len()
		}
		h.from += maxHoles / 8
	}
}

// fill marks [lo, hi) as seen and appends the parts that were holes to fresh.
func (h *holes) fill(lo, hi uint64, fresh []interval.Span) []interval.Span {
	if lo >= hi {
		return fresh
	}
	if h.fillLowest(lo, hi) {
		return append(fresh, interval.Span{Lo: lo, Hi: hi})
	}
	for at := h.from + after(h.spans[h.from:], lo); at < len(h.spans) && h.spans[at].Lo < hi; {
		s := h.spans[at]
		part := interval.Span{Lo: max(lo, s.Lo), Hi: min(hi, s.Hi)}
		fresh = append(fresh, part)
		switch {
		case s.Lo < part.Lo && part.Hi < s.Hi:
			h.spans[at].Lo = part.Hi
			h.spans = slices.Insert(h.spans, at, interval.Span{Lo: s.Lo, Hi: part.Lo})
			h.bound()
			return fresh
		case s.Lo < part.Lo:
			h.spans[at].Hi = part.Lo
			at++
		case part.Hi < s.Hi:
			h.spans[at].Lo = part.Hi
			return fresh
		case at == h.from:
			h.from++
			at++
		default:
			h.spans = slices.Delete(h.spans, at, at+1)
		}
	}
	return fresh
}

// fillLowest fills the start of the lowest hole, the usual case, and reports
// whether it could.
func (h *holes) fillLowest(lo, hi uint64) bool {
	if h.from == len(h.spans) {
		return false
	}
	s := &h.spans[h.from]
	if s.Lo != lo || hi > s.Hi {
		return false
	}
	if s.Lo = hi; hi == s.Hi {
		h.from++
	}
	return true
}

// in returns the number of bytes in holes at or above lo.
func (h *holes) in(lo uint64) uint64 {
	var n uint64
	for _, s := range h.spans[h.from:] {
		if s.Hi > lo {
			n += s.Hi - max(s.Lo, lo)
		}
	}
	return n
}

// after returns the index of the first span that ends after lo.
func after(spans []interval.Span, lo uint64) int {
	return sort.Search(len(spans), func(i int) bool { return spans[i].Hi > lo })
}
