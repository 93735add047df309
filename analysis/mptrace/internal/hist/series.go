package hist

import (
	"math"
	"slices"
)

// DefaultLimit is the limit of a [Series] whose Limit is 0.
const DefaultLimit = 1000

// Point is a number with its time.
type Point struct{ TimeNS, Value int64 }

// Series summarises a sequence of non-negative numbers.
//
// It keeps every 2^k-th number, starting with k = 0: whenever 2·Limit numbers
// are kept, it drops every second one and increments k. Quantiles are exact
// while all numbers are kept. Afterwards they come from a histogram whose
// classes are at most 1/64 wide, so they are within 0.8 %.
type Series struct {
	// Limit is the minimum number of kept numbers. 0 means [DefaultLimit], a
	// negative limit keeps all. Set it before the first Add.
	Limit int32
	shift uint8 // every 1<<shift-th number is kept

	n, min, max, first, last int64
	sum                      int64   // of value − first
	squares                  float64 // of value − first

	kept    []Point
	classes *classes // of all numbers; nil while all numbers are kept
}

// Add adds a number; a negative number counts as 0.
func (s *Series) Add(timeNS, v int64) {
	v = max(v, 0)
	if s.n == 0 {
		s.min, s.max, s.first = v, v, v
	}
	s.min, s.max, s.last = min(s.min, v), max(s.max, v), v
	d := v - s.first
	s.sum += d
	s.squares += float64(d) * float64(d)
	if s.n&(1<<s.shift-1) == 0 {
		s.keep(timeNS, v)
	}
	if s.classes != nil {
		s.classes.add(v)
	}
	s.n++
}

func (s *Series) keep(timeNS, v int64) {
	if limit := s.limit(); limit > 0 && len(s.kept) >= 2*limit {
		s.thin()
		if s.n&(1<<s.shift-1) != 0 {
			return
		}
	}
	if s.kept == nil {
		s.kept = make([]Point, 0, 4)
	}
	s.kept = append(s.kept, Point{timeNS, v})
}

func (s *Series) limit() int {
	if s.Limit == 0 {
		return DefaultLimit
	}
	return int(s.Limit)
}

// thin drops every second kept number. On its first call it also builds the
// histogram of all numbers.
func (s *Series) thin() {
	if s.classes == nil {
		s.classes = new(classes)
		for _, p := range s.kept {
			s.classes.add(p.Value)
		}
	}
	half := s.kept[:0]
	for i := 0; i < len(s.kept); i += 2 {
		half = append(half, s.kept[i])
	}
	s.kept = half
	s.shift++
}

// keptLists is the maximum length of the lists that Emptied keeps.
const keptLists = 128

// Emptied returns an empty series that uses the memory of this one.
func (s *Series) Emptied() Series {
	if cap(s.kept) > keptLists {
		return Series{}
	}
	return Series{kept: s.kept[:0]}
}

// N returns the count of numbers.
func (s *Series) N() int64 { return s.n }

// Min returns the smallest number, or 0 if there are no numbers.
func (s *Series) Min() int64 { return s.min }

// Max returns the greatest number, or 0 if there are no numbers.
func (s *Series) Max() int64 { return s.max }

// Last returns the latest number, or 0 if there are no numbers.
func (s *Series) Last() int64 { return s.last }

// Mean returns the arithmetic mean, or 0 if there are no numbers.
func (s *Series) Mean() float64 {
	if s.n == 0 {
		return 0
	}
	return float64(s.first) + float64(s.sum)/float64(s.n)
}

// Stdev returns the sample standard deviation (n − 1), or 0 for fewer than two
// numbers.
func (s *Series) Stdev() float64 {
	if s.n < 2 {
		return 0
	}
	n, sum := float64(s.n), float64(s.sum)
	return math.Sqrt(max(0, (s.squares-sum/n*sum)/(n-1)))
}

// Quantiles appends the quantile for each q in [0, 1], interpolated linearly
// between neighbouring ranks. Without numbers, quantiles are 0.
func (s *Series) Quantiles(to []float64, qs ...float64) []float64 {
	var few [256]int64 // avoids an allocation
	sorted := s.sorted(few[:0])
	for _, q := range qs {
		place := min(max(q, 0), 1) * float64(max(s.n-1, 0))
		rank := int64(place)
		lo, hi := s.at(rank, sorted), s.at(min(rank+1, s.n-1), sorted)
		to = append(to, lo+(hi-lo)*(place-float64(rank)))
	}
	return to
}

// sorted appends the numbers in ascending order, or returns nil if some were
// dropped.
func (s *Series) sorted(to []int64) []int64 {
	if s.classes != nil {
		return nil
	}
	for _, p := range s.kept {
		to = append(to, p.Value)
	}
	slices.Sort(to)
	return to
}

// at returns the number at a rank. sorted holds all numbers if none were
// dropped.
func (s *Series) at(rank int64, sorted []int64) float64 {
	v := int64(0)
	switch {
	case s.n == 0:
	case s.classes == nil:
		v = sorted[rank]
	default:
		v = s.classes.at(rank)
	}
	return float64(min(max(v, s.min), s.max))
}

// Kept returns the kept numbers in their order of arrival. They are valid until
// the next Add.
func (s *Series) Kept() []Point { return s.kept }

// Weight returns how many numbers the i-th kept number represents: itself and
// the dropped numbers after it. The sum of all weights is N.
func (s *Series) Weight(i int) int32 {
	return int32(min(1<<s.shift, s.n-int64(i)<<s.shift))
}
