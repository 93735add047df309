package report

import (
	"math"
	"slices"
)

// Summary are the order statistics of one series of times. A failed sample is longer than any that did not fail.
type Summary struct {
	Median, Q1, Q3, Min, Max float64
	N                        int
	Failed                   int
}

// Summarize computes them; failed samples are +Inf.
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

// There says whether there is a median: something was measured, and most of it did not fail.
func (s Summary) There() bool { return s.N > 0 && !math.IsInf(s.Median, 0) }

// quantile interpolates linearly between the order statistics (Hyndman and Fan 1996, type 7); next to a failed sample it
// is that.
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
