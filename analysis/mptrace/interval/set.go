// Package interval keeps sets of byte numbers as merged intervals.
package interval

import "slices"

// MaxSpans bounds the memory of one [Set]. Beyond it the gaps among the
// lowest spans are filled: bytes that later arrive there count as seen.
const MaxSpans = 1 << 16

// Span is the half-open interval [Lo, Hi).
type Span struct{ Lo, Hi uint64 }

// Len is the number of bytes in the span.
func (s Span) Len() uint64 { return s.Hi - s.Lo }

// Set is a set of byte numbers. The zero value is empty.
type Set struct {
	spans  []Span
	bytes  uint64
	filled uint64
}

// Bytes is the number of bytes that were added, each counted once.
func (s *Set) Bytes() uint64 { return s.bytes }

// Filled is the number of bytes that were never added but are held as seen,
// because the set had grown to [MaxSpans].
func (s *Set) Filled() uint64 { return s.filled }

// Spans returns the merged spans in ascending order, valid until the next Add.
func (s *Set) Spans() []Span { return s.spans }

// Floor is the end of the lowest span: no byte of it can be new again.
func (s *Set) Floor() uint64 {
	if len(s.spans) == 0 {
		return 0
	}
	return s.spans[0].Hi
}

// Clone returns a copy of the set.
func (s *Set) Clone() Set {
	c := *s
	c.spans = slices.Clone(s.spans)
	return c
}

// Add adds [lo, hi) and returns the number of bytes that were new.
func (s *Set) Add(lo, hi uint64) uint64 {
	if lo >= hi {
		return 0
	}
	n := len(s.spans)
	if n > 0 && s.spans[n-1].Hi == lo { // in order: the usual case
		s.spans[n-1].Hi = hi
		s.bytes += hi - lo
		return hi - lo
	}
	if n == 0 || s.spans[n-1].Hi < lo {
		s.spans = append(s.spans, Span{lo, hi})
		s.bytes += hi - lo
		s.bound()
		return hi - lo
	}
	from := s.first(lo)
	fresh, to, merged := hi-lo, from, Span{lo, hi}
	for ; to < n && s.spans[to].Lo <= hi; to++ {
		fresh -= overlap(s.spans[to], lo, hi)
		merged.Lo = min(merged.Lo, s.spans[to].Lo)
		merged.Hi = max(merged.Hi, s.spans[to].Hi)
	}
	if to == from {
		s.spans = slices.Insert(s.spans, from, merged)
		s.bound()
	} else {
		s.spans[from] = merged
		s.spans = slices.Delete(s.spans, from+1, to)
	}
	s.bytes += fresh
	return fresh
}

// New appends to gaps the parts of [lo, hi) that are not in the set.
func (s *Set) New(lo, hi uint64, gaps []Span) []Span {
	for i := s.first(lo); lo < hi; i++ {
		if i == len(s.spans) || s.spans[i].Lo >= hi {
			return append(gaps, Span{lo, hi})
		}
		if s.spans[i].Lo > lo {
			gaps = append(gaps, Span{lo, s.spans[i].Lo})
		}
		lo = max(lo, s.spans[i].Hi)
	}
	return gaps
}

// In appends to parts what of [lo, hi) is in the set.
func (s *Set) In(lo, hi uint64, parts []Span) []Span {
	for i := s.first(lo); i < len(s.spans) && s.spans[i].Lo < hi; i++ {
		if overlap(s.spans[i], lo, hi) > 0 {
			parts = append(parts, Span{max(lo, s.spans[i].Lo), min(hi, s.spans[i].Hi)})
		}
	}
	return parts
}

// Overlap is the number of bytes of [lo, hi) that are in the set.
func (s *Set) Overlap(lo, hi uint64) uint64 {
	var sum uint64
	for i := s.first(lo); i < len(s.spans) && s.spans[i].Lo < hi; i++ {
		sum += overlap(s.spans[i], lo, hi)
	}
	return sum
}

// Remove takes [lo, hi) out of the set.
func (s *Set) Remove(lo, hi uint64) {
	for i := s.first(lo); lo < hi && i < len(s.spans) && s.spans[i].Lo < hi; {
		span := s.spans[i]
		s.bytes -= overlap(span, lo, hi)
		left, right := Span{span.Lo, min(span.Hi, lo)}, Span{max(span.Lo, hi), span.Hi}
		switch {
		case left.Lo < left.Hi && right.Lo < right.Hi:
			s.spans[i] = right
			s.spans = slices.Insert(s.spans, i, left)
			return
		case left.Lo < left.Hi:
			s.spans[i] = left
			i++
		case right.Lo < right.Hi:
			s.spans[i] = right
			return
		default:
			s.spans = slices.Delete(s.spans, i, i+1)
		}
	}
}

// first is the index of the first span that ends at or after lo. Most
// questions are about the end of the set, so that is looked at first.
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
func (s *Set) bound() {
	if len(s.spans) <= MaxSpans {
		return
	}
	const eighth = MaxSpans / 8
	var held uint64
	for _, span := range s.spans[:eighth] {
		held += span.Len()
	}
	low := Span{s.spans[0].Lo, s.spans[eighth-1].Hi}
	s.filled += low.Len() - held
	s.spans[0] = low
	s.spans = slices.Delete(s.spans, 1, eighth)
}

func overlap(s Span, lo, hi uint64) uint64 {
	lo, hi = max(lo, s.Lo), min(hi, s.Hi)
	if lo >= hi {
		return 0
	}
	return hi - lo
}
