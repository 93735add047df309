package hist

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// numbers returns numbers similar to round trips: many close together, some far
// away.
func numbers(n int) []int64 {
	random := rand.New(rand.NewPCG(1, uint64(n)))
	v := make([]int64, n)
	for i := range v {
		v[i] = int64(20e6 + 2e6*random.NormFloat64())
		if random.IntN(50) == 0 {
			v[i] *= 1 + random.Int64N(100)
		}
	}
	return v
}

func series(limit int32, values []int64) *Series {
	s := &Series{Limit: limit}
	for i, v := range values {
		s.Add(int64(i), v)
	}
	return s
}

// exact returns the quantile of sorted numbers as defined by Quantiles.
func exact(sorted []int64, q float64) float64 {
	place := q * float64(len(sorted)-1)
	i := int(place)
	if i+1 == len(sorted) {
		return float64(sorted[i])
	}
	return float64(sorted[i]) + (place-float64(i))*float64(sorted[i+1]-sorted[i])
}

func TestMoments(t *testing.T) {
	for _, n := range []int{1, 2, 10, 100000} {
		v := numbers(n)
		s := series(10, v)
		var mean, squares float64
		for _, x := range v {
			mean += float64(x) / float64(n)
		}
		for _, x := range v {
			squares += (float64(x) - mean) * (float64(x) - mean)
		}
		stdev := 0.
		if n > 1 {
			stdev = math.Sqrt(squares / float64(n-1))
		}
		if s.N() != int64(n) || s.Min() != slices.Min(v) || s.Max() != slices.Max(v) || s.Last() != v[n-1] ||
			math.Abs(s.Mean()-mean) > 1e-9*mean || math.Abs(s.Stdev()-stdev) > 1e-6*stdev {
			t.Errorf("%d: mean %g, want %g; stdev %g, want %g", n, s.Mean(), mean, s.Stdev(), stdev)
		}
	}
	if s := (&Series{}); s.Mean() != 0 || s.Stdev() != 0 || s.Quantiles(nil, .5)[0] != 0 || len(s.Kept()) != 0 {
		t.Error("a series of nothing")
	}
}

func TestQuantiles(t *testing.T) {
	qs := []float64{0, .01, .25, .5, .75, .9, .99, .999, 1}
	for _, c := range []struct {
		limit int32
		n     int
		error float64
	}{{0, 1, 0}, {0, 2000, 0}, {-1, 50000, 0}, {10, 20, 0}, {10, 21, 1. / 128}, {0, 50000, 1. / 128}} {
		v := numbers(c.n)
		got := series(c.limit, v).Quantiles(nil, qs...)
		slices.Sort(v)
		for i, q := range qs {
			if want := exact(v, q); math.Abs(got[i]-want) > c.error*want+1e-6 {
				t.Errorf("limit %d, %d numbers: quantile %g is %g, want %g", c.limit, c.n, q, got[i], want)
			}
		}
	}
}

func TestKeptNumbersAreSpreadEvenly(t *testing.T) {
	const limit = 16
	for n := range 300 {
		v := make([]int64, n)
		for i := range v {
			v[i] = int64(i)
		}
		s := series(limit, v)
		var weight int64
		for i, p := range s.Kept() {
			if p.Value != weight || p.TimeNS != weight {
				t.Fatalf("%d numbers: the one kept at %d is %v", n, i, p)
			}
			weight += int64(s.Weight(i))
		}
		if k := len(s.Kept()); weight != int64(n) || k > 2*limit || k < min(n, limit) {
			t.Fatalf("%d numbers: %d kept, of weight %d", n, k, weight)
		}
	}
}

func TestClasses(t *testing.T) {
	last := -1
	for v := uint64(0); v < 1<<20; v++ {
		k := class(v)
		if k != last && (k != last+1 || lower(k) != v) {
			t.Fatalf("%d is in class %d, which begins at %d", v, k, lower(k))
		}
		last = k
	}
	for _, v := range []uint64{1 << 40, 1<<50 + 12345, 1<<63 - 1} {
		k := class(v)
		if lower(k) > v || lower(k+1) <= v || float64(lower(k+1)-lower(k)) > float64(v)/64 || k/perOctave >= octaves {
			t.Errorf("%d: class %d from %d", v, k, lower(k))
		}
	}
}

func TestSizesAgainstAMap(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for _, different := range []int{1, 5, 1000, MaxSizes, MaxSizes + 1, 100000} {
		var s Sizes
		want := map[int64]int64{}
		for i := range 3 * different {
			v := uint64(i % different * 37)
			for range 1 + random.IntN(3) {
				s.Add(v)
				if different > MaxSizes {
					want[int64(lower(class(v)))]++
				} else {
					want[int64(v)]++
				}
			}
		}
		for range 2 { // a query changes nothing
			last, n := int64(-1), 0
			s.Each(func(size, count int64) {
				if size <= last || want[size] != count {
					t.Errorf("%d of %d, want %d", count, size, want[size])
				}
				last = size
				n++
			})
			if n != len(want) || n > MaxSizes {
				t.Errorf("%d sizes, want %d", n, len(want))
			}
		}
	}
}

func TestZeroValuesHoldNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() {
		var s Series
		var z Sizes
		z.Add(5)
		z.Add(5)
		_ = s.N()
	}); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

func BenchmarkSeries(b *testing.B) {
	v := numbers(4096)
	var s Series
	i := 0
	for b.Loop() {
		s.Add(int64(i), v[i&4095])
		i++
	}
}

func BenchmarkSizes(b *testing.B) {
	var s Sizes
	sizes := [8]uint64{1448, 2896, 2896, 1448, 4344, 2896, 14480, 7240}
	i := 0
	for b.Loop() {
		s.Add(sizes[i&7])
		i++
	}
}
