package hist

import (
	"math"
	"slices"
)

// DefaultLimit is the limit of a [Series] that has none.
const DefaultLimit = 1000

// Point is a number with its time.
type Point struct{ TimeNS, Value int64 }

// Series describes a sequence of numbers that are not negative.
//
// It keeps every first, second, fourth, … of them: all up to 2·Limit, then,
// whenever 2·Limit are kept, every second of those is dropped. Quantiles are
// exact as long as all are kept. Beyond that they come from a histogram whose
// classes are at most 1/64 wide, so within 0.8 %.
type Series struct {
	// Limit is how many numbers are kept at least; 0 is [DefaultLimit], and a
	// negative one keeps all. Set it before the first Add.
	Limit int32
	shift uint8 // every 1<<shift-th number is kept

	n, min, max, first, last int64
	sum                      int64   // of value − first
	squares                  float64 // of value − first

	kept    []Point
	classes *classes // of all numbers, once some were dropped
}

// Add takes the next number; what is below zero counts as zero.
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

// thin drops every second number that is kept; before the first time, all are
// counted in classes.
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

// N is how many numbers came.
func (s *Series) N() int64 { return s.n }

// Min is the least number, 0 without any.
func (s *Series) Min() int64 { return s.min }

// Max is the greatest number, 0 without any.
func (s *Series) Max() int64 { return s.max }

// Last is the number that came last, 0 without any.
func (s *Series) Last() int64 { return s.last }

// Mean is the arithmetic mean, 0 without numbers.
func (s *Series) Mean() float64 {
	if s.n == 0 {
		return 0
	}
	return float64(s.first) + float64(s.sum)/float64(s.n)
}

// Stdev is the standard deviation of the sample (n − 1), 0 below two numbers.
func (s *Series) Stdev() float64 {
	if s.n < 2 {
		return 0
	}
	n, sum := float64(s.n), float64(s.sum)
	return math.Sqrt(max(0, (s.squares-sum/n*sum)/(n-1)))
}

// Quantiles appends the quantile of every q from 0 to 1, linear between
// neighbours in the order of the numbers; zeros without numbers.
func (s *Series) Quantiles(to []float64, qs ...float64) []float64 {
	var few [256]int64 // spares an allocation
	sorted := s.sorted(few[:0])
	for _, q := range qs {
		place := min(max(q, 0), 1) * float64(max(s.n-1, 0))
		rank := int64(place)
		lo, hi := s.at(rank, sorted), s.at(min(rank+1, s.n-1), sorted)
		to = append(to, lo+(hi-lo)*(place-float64(rank)))
	}
	return to
}

// sorted appends the numbers in their order, when all were kept.
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

// at is the number at a rank; sorted are all numbers, when they were kept.
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

// Kept returns the numbers that were kept, in the order in which they came,
// valid until the next Add.
func (s *Series) Kept() []Point { return s.kept }

// Weight is how many numbers the i-th kept one stands for: itself and those
// that were left out behind it. All weights together are N.
func (s *Series) Weight(i int) int32 {
	return int32(min(1<<s.shift, s.n-int64(i)<<s.shift))
}
