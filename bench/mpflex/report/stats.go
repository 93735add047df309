package report

import (
	"math"
	"slices"
)

// Summary holds the order statistics of a series of times. A failed sample is longer than any successful one.
type Summary struct {
	Median, Q1, Q3, Min, Max float64
	N                        int
	Failed                   int
}

// Summarize computes the summary; failed samples are +Inf.
func Summarize(values []float64) Summary {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 {
		return Summary{Median: math.NaN(), Q1: math.NaN(), Q3: math.NaN(), Min: math.NaN(), Max: math.NaN()}
	}
	s := Summary{
		Median: quantile(sorted, 0.5), Q1: quantile(sorted, 0.25), Q3: quantile(sorted, 0.75),
		Min: sorted[0], Max: sorted[len(sorted)-1], N: len(sorted),
	}
	for _, v := range sorted {
		if math.IsInf(v, 1) {
			s.Failed++
		}
	}
	return s
}

// There reports whether the median exists: there are samples, and less than half of them failed.
func (s Summary) There() bool { return s.N > 0 && !math.IsInf(s.Median, 0) }

// quantile interpolates linearly between the order statistics (Hyndman and Fan 1996, type 7). Next to a failed sample
// it is infinite.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low+1 >= len(sorted) || at == float64(low) {
		return sorted[low]
	}
	if math.IsInf(sorted[low+1], 1) {
		return sorted[low+1]
	}
	return sorted[low] + (at-float64(low))*(sorted[low+1]-sorted[low])
}
