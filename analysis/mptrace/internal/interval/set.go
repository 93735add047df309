package interval

import "slices"

// MaxSpans bounds the memory of one [Set]. Beyond it the gaps among the
// lowest spans are filled: bytes that later arrive there count as seen.
const MaxSpans = 1 << 16

// Span is the half-open interval [Lo, Hi).
type Span struct{ Lo, Hi uint64 }

// Len is the number of bytes in the span.
func (s Span) Len() uint64 { return s.Hi - s.Lo }

// Set is a set of byte numbers. The zero value is empty. A set without holes
// is one span and has no list.
type Set struct {
	top    Span   // the highest span; its copy at the end of spans may be old
	spans  []Span // all spans in ascending order; none: top is the only one
	bytes  uint64
	filled uint64
}

// Bytes is the number of bytes that were added, each counted once.
func (s *Set) Bytes() uint64 { return s.bytes }

// Filled is the number of bytes that were never added but are held as seen,
// because the set had grown to [MaxSpans].
func (s *Set) Filled() uint64 { return s.filled }

// Spans returns the merged spans in ascending order, valid until the next Add.
func (s *Set) Spans() []Span {
	switch n := len(s.spans); {
	case n > 0:
		s.spans[n-1] = s.top
	case s.top.Lo < s.top.Hi:
		s.spans = append(s.spans, s.top)
	}
	return s.spans
}

// keep stores the list of spans after a change.
func (s *Set) keep(spans []Span) {
	s.spans, s.top = spans, Span{}
	if n := len(spans); n > 0 {
		s.top = spans[n-1]
	}
}

// Top is the highest span; it is empty when the set is.
func (s *Set) Top() Span { return s.top }

// First is the lowest span; it is empty when the set is.
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

// Extend adds [lo, hi), hi not below lo, when it follows the highest span at
// once, and says whether it did. Nearly all data comes so.
func (s *Set) Extend(lo, hi uint64) bool {
	if lo != s.top.Hi {
		return false
	}
	s.top.Hi = hi
	s.bytes += hi - lo
	return true
}

// Add adds [lo, hi) and returns the number of bytes that were new.
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

// In appends to parts what of [lo, hi) is in the set.
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

// Overlap is the number of bytes of [lo, hi) that are in the set.
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

// Remove takes [lo, hi) out of the set.
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

// Below takes all bytes below lo out of the set.
func (s *Set) Below(lo uint64) {
	if lo >= s.top.Hi {
		s.spans, s.top, s.bytes = s.spans[:0], Span{}, 0
		return
	}
	s.Remove(0, lo)
}

// first is the index of the first span that ends at or after lo. Most
// questions are about the end of the set, so that is looked at first. The list
// is up to date.
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

// bound fills the gaps of the lowest eighth when there are too many spans.
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
