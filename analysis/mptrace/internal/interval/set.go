package interval

import "slices"

// MaxSpans bounds the memory of one [Set]. Beyond it, the gaps between the
// lowest spans are filled: bytes that arrive there later count as seen.
const MaxSpans = 1 << 16

// Span is the half-open interval [Lo, Hi).
type Span struct{ Lo, Hi uint64 }

// Len returns the number of bytes in the span.
func (s Span) Len() uint64 { return s.Hi - s.Lo }

// Set is a set of byte numbers. The zero value is empty. A set without holes
// consists of one span and needs no list.
type Set struct {
	top    Span   // the highest span; its copy at the end of spans may be outdated
	spans  []Span // all spans in ascending order; empty: top is the only span
	bytes  uint64
	filled uint64
}

// Bytes returns the number of distinct bytes that were added.
func (s *Set) Bytes() uint64 { return s.bytes }

// Filled returns the number of bytes that were never added but count as seen
// because the set exceeded [MaxSpans].
func (s *Set) Filled() uint64 { return s.filled }

// Spans returns the merged spans in ascending order. They are valid until the
// next Add.
func (s *Set) Spans() []Span {
	switch n := len(s.spans); {
	case n > 0:
		s.spans[n-1] = s.top
	case s.top.Lo < s.top.Hi:
		s.spans = append(s.spans, s.top)
	}
	return s.spans
}

// keep stores the changed list of spans.
func (s *Set) keep(spans []Span) {
	s.spans, s.top = spans, Span{}
	if n := len(spans); n > 0 {
		s.top = spans[n-1]
	}
}

// Top returns the highest span, or an empty span if the set is empty.
func (s *Set) Top() Span { return s.top }

// First returns the lowest span, or an empty span if the set is empty.
func (s *Set) First() Span {
	if len(s.spans) > 1 {
		return s.spans[0]
	}
	return s.top
}

// Clone returns a copy of the set.
func (s *Set) Clone() Set {
	c := *s
	c.spans = slices.Clone(s.spans)
	return c
}

// Extend adds [lo, hi) if it starts where the highest span ends, and reports
// whether it did; hi must not be below lo. This is the fast path: nearly all
// data arrives in order.
func (s *Set) Extend(lo, hi uint64) bool {
	if lo != s.top.Hi {
		return false
	}
	s.top.Hi = hi
	s.bytes += hi - lo
	return true
}

// Add adds [lo, hi) and returns the number of new bytes.
func (s *Set) Add(lo, hi uint64) uint64 {
	if lo >= hi {
		return 0
	}
	if s.Extend(lo, hi) {
		return hi - lo
	}
	return s.insert(lo, hi)
}

func (s *Set) insert(lo, hi uint64) uint64 {
	if lo >= s.top.Lo && hi <= s.top.Hi {
		return 0
	}
	if s.top.Lo == s.top.Hi {
		s.top, s.bytes = Span{lo, hi}, hi-lo
		return hi - lo
	}
	spans := s.Spans()
	from := s.first(lo)
	fresh, to, merged := hi-lo, from, Span{lo, hi}
	for ; to < len(spans) && spans[to].Lo <= hi; to++ {
		fresh -= overlap(spans[to], lo, hi)
		merged.Lo = min(merged.Lo, spans[to].Lo)
		merged.Hi = max(merged.Hi, spans[to].Hi)
	}
	if to == from {
		spans = s.bound(slices.Insert(spans, from, merged))
	} else {
		spans[from] = merged
		spans = slices.Delete(spans, from+1, to)
	}
	s.keep(spans)
	s.bytes += fresh
	return fresh
}

// New appends to gaps the parts of [lo, hi) that are not in the set.
func (s *Set) New(lo, hi uint64, gaps []Span) []Span {
	if lo >= s.top.Hi && lo < hi {
		return append(gaps, Span{lo, hi})
	}
	spans := s.Spans()
	for i := s.first(lo); lo < hi; i++ {
		if i == len(spans) || spans[i].Lo >= hi {
			return append(gaps, Span{lo, hi})
		}
		if spans[i].Lo > lo {
			gaps = append(gaps, Span{lo, spans[i].Lo})
		}
		lo = max(lo, spans[i].Hi)
	}
	return gaps
}

// In appends the parts of [lo, hi) that are in the set to parts.
func (s *Set) In(lo, hi uint64, parts []Span) []Span {
	if lo >= s.top.Hi {
		return parts
	}
	spans := s.Spans()
	for i := s.first(lo); i < len(spans) && spans[i].Lo < hi; i++ {
		if overlap(spans[i], lo, hi) > 0 {
			parts = append(parts, Span{max(lo, spans[i].Lo), min(hi, spans[i].Hi)})
		}
	}
	return parts
}

// Overlap returns the number of bytes of [lo, hi) that are in the set.
func (s *Set) Overlap(lo, hi uint64) uint64 {
	if lo >= s.top.Hi {
		return 0
	}
	if lo >= s.top.Lo {
		return overlap(s.top, lo, hi)
	}
	var sum uint64
	spans := s.Spans()
	for i := s.first(lo); i < len(spans) && spans[i].Lo < hi; i++ {
		sum += overlap(spans[i], lo, hi)
	}
	return sum
}

// Remove removes [lo, hi) from the set.
func (s *Set) Remove(lo, hi uint64) {
	if lo >= s.top.Hi {
		return
	}
	spans := s.Spans()
	for i := s.first(lo); lo < hi && i < len(spans) && spans[i].Lo < hi; {
		span := spans[i]
		s.bytes -= overlap(span, lo, hi)
		left, right := Span{span.Lo, min(span.Hi, lo)}, Span{max(span.Lo, hi), span.Hi}
		switch {
		case left.Lo < left.Hi && right.Lo < right.Hi:
			spans[i] = right
			s.keep(slices.Insert(spans, i, left))
			return
		case left.Lo < left.Hi:
			spans[i] = left
			i++
		case right.Lo < right.Hi:
			spans[i] = right
			i++
		default:
			spans = slices.Delete(spans, i, i+1)
		}
	}
	s.keep(spans)
}

// Below removes all bytes below lo from the set.
func (s *Set) Below(lo uint64) {
	if lo >= s.top.Hi {
		s.spans, s.top, s.bytes = s.spans[:0], Span{}, 0
		return
	}
	s.Remove(0, lo)
}

// first returns the index of the first span that ends at or after lo. It checks
// the end of the set first because most queries concern the end. The list must
// be up to date.
func (s *Set) first(lo uint64) int {
	n := len(s.spans)
	if n == 0 || s.spans[n-1].Hi < lo {
		return n
	}
	if n == 1 || s.spans[n-2].Hi < lo {
		return n - 1
	}
	a, b := 0, n-1
	for a < b {
		if m := (a + b) / 2; s.spans[m].Hi < lo {
			a = m + 1
		} else {
			b = m
		}
	}
	return a
}

// bound fills the gaps of the lowest eighth of the spans if there are too many
// spans.
func (s *Set) bound(spans []Span) []Span {
	if len(spans) <= MaxSpans {
		return spans
	}
	const eighth = MaxSpans / 8
	var held uint64
	for _, span := range spans[:eighth] {
		held += span.Len()
	}
	low := Span{spans[0].Lo, spans[eighth-1].Hi}
	s.filled += low.Len() - held
	spans[0] = low
	return slices.Delete(spans, 1, eighth)
}

func overlap(s Span, lo, hi uint64) uint64 {
	lo, hi = max(lo, s.Lo), min(hi, s.Hi)
	if lo >= hi {
		return 0
	}
	return hi - lo
}
