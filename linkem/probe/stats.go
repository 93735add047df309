package probe

import (
	"math"
	"slices"
)

// RTT is a distribution of round-trip times in milliseconds.
type RTT struct {
	Min      float64 `json:"min"`
	Median   float64 `json:"median"`
	P90      float64 `json:"p90"`
	IQR      float64 `json:"iqr"`
	Sent     int     `json:"sent"`
	Received int     `json:"received"`
}

// newRTT summarises round-trip times in milliseconds; there must be at least one.
func newRTT(ms []float64, sent int) RTT {
	sorted := slices.Sorted(slices.Values(ms))
	return RTT{
		Min:      rounded(sorted[0]),
		Median:   rounded(quantile(sorted, 0.5)),
		P90:      rounded(quantile(sorted, 0.9)),
		IQR:      rounded(quantile(sorted, 0.75) - quantile(sorted, 0.25)),
		Sent:     sent,
		Received: len(sorted),
	}
}

// quantile interpolates linearly between the order statistics (Hyndman and Fan 1996, type 7).
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[low] + (at-float64(low))*(sorted[low+1]-sorted[low])
}

// rounded keeps three decimals: microseconds, or bit/s.
func rounded(v float64) float64 { return math.Round(v*1000) / 1000 }
