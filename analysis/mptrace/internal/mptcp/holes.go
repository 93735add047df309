package mptcp

import (
	"slices"

	"mplab/analysis/mptrace/internal/interval"
)

// maxHoles bounds the memory of one direction. Beyond it the lowest eighth is
// taken as seen: bytes that later arrive there count as old.
const maxHoles = 1 << 16

// holes are the parts of a direction's data, below the highest byte seen, that
// were not seen. With two subflows the slower one fills the lowest hole all the
// time, so that one is at hand.
type holes struct {
	spans  []interval.Span // ascending; those before from are filled
	from   int
	filled uint64 // bytes taken as seen
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

// fill takes [lo, hi) as seen and appends to fresh what of it was a hole.
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

// fillLowest fills the beginning of the lowest hole, the usual case.
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

// in is the number of bytes in holes at or above lo.
func (h *holes) in(lo uint64) uint64 {
	var n uint64
	for _, s := range h.spans[h.from:] {
		if s.Hi > lo {
			n += s.Hi - max(s.Lo, lo)
		}
	}
	return n
}

// after is the index of the first span that ends behind lo.
func after(spans []interval.Span, lo uint64) int {
	a, b := 0, len(spans)
	for a < b {
		if m := int(uint(a+b) / 2); spans[m].Hi <= lo {
			a = m + 1
		} else {
			b = m
		}
	}
	return a
}
