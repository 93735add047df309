package udpjitter

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Distribution describes values in milliseconds.
type Distribution struct {
	Min    float64 `json:"min"`
	Mean   float64 `json:"mean"`
	Stdev  float64 `json:"stdev"` // of the population
	P5     float64 `json:"p5"`
	P25    float64 `json:"p25"`
	Median float64 `json:"median"`
	P75    float64 `json:"p75"`
	P95    float64 `json:"p95"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
}

// newDistribution returns the distribution of values in ns, in ms, or nil without
// values. It sorts the values.
func newDistribution(ns []int64) *Distribution {
	if len(ns) == 0 {
		return nil
	}
	slices.Sort(ns)
	// Deviations from the minimum keep all digits, even if the clocks differ much.
	sum, squares := 0.0, 0.0
	for _, v := range ns {
		sum += float64(v - ns[0])
	}
	mean := sum / float64(len(ns))
	for _, v := range ns {
		d := float64(v-ns[0]) - mean
		squares += d * d
	}
	return &Distribution{
		Min: milliseconds(float64(ns[0])), Mean: milliseconds(float64(ns[0]) + mean),
		Stdev: milliseconds(math.Sqrt(squares / float64(len(ns)))),
		P5:    milliseconds(quantile(ns, 0.05)), P25: milliseconds(quantile(ns, 0.25)),
		Median: milliseconds(quantile(ns, 0.5)), P75: milliseconds(quantile(ns, 0.75)),
		P95: milliseconds(quantile(ns, 0.95)), P99: milliseconds(quantile(ns, 0.99)),
		Max: milliseconds(float64(ns[len(ns)-1])),
	}
}

// newVariation returns the distribution of delays minus their minimum: the packet delay
// variation of RFC 5481 §4.2. The offset between the clocks of both ends cancels out.
func newVariation(ns []int64) *Distribution {
	if len(ns) == 0 {
		return nil
	}
	least := slices.Min(ns)
	above := make([]int64, len(ns))
	for i, v := range ns {
		above[i] = v - least
	}
	return newDistribution(above)
}

// journey is one datagram in one direction: its number, and its times of sending and
// arrival, in ns on the clock of each end.
type journey struct {
	number        uint32
	sent, arrived int64
}

// delaysOf returns the one-way delays.
func delaysOf(journeys []journey) []int64 {
	delays := make([]int64, len(journeys))
	for i, j := range journeys {
		delays[i] = j.arrived - j.sent
	}
	return delays
}

// heldOf returns how long each datagram waits for those with lower numbers before it
// can be delivered in order. It sorts the journeys by number.
func heldOf(journeys []journey) []int64 {
	slices.SortFunc(journeys, func(a, b journey) int { return cmp.Compare(a.number, b.number) })
	held := make([]int64, len(journeys))
	latest := int64(math.MinInt64)
	for i, j := range journeys {
		latest = max(latest, j.arrived)
		held[i] = latest - j.arrived
	}
	return held
}

// least returns the minimum of values in ns, in ms, or nil without values.
func least(ns []int64) *float64 {
	if len(ns) == 0 {
		return nil
	}
	ms := milliseconds(float64(slices.Min(ns)))
	return &ms
}

// percentiles returns the 0th to the 100th percentile of sorted values in ns, in ms.
func percentiles(sorted []int64) []float64 {
	if len(sorted) == 0 {
		return nil
	}
	all := make([]float64, 101)
	for i := range all {
		all[i] = milliseconds(quantile(sorted, float64(i)/100))
	}
	return all
}

// quantile interpolates linearly between order statistics (Hyndman and Fan 1996, type
// 7).
func quantile(sorted []int64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low+1 >= len(sorted) {
		return float64(sorted[len(sorted)-1])
	}
	return float64(sorted[low]) + (at-float64(low))*float64(sorted[low+1]-sorted[low])
}

// milliseconds converts ns to ms, with µs resolution.
func milliseconds(ns float64) float64 { return math.Round(ns/1e3) / 1e3 }

func inMs(d time.Duration) float64 { return milliseconds(float64(d)) }

// seconds returns a duration in seconds, with µs resolution.
func seconds(d time.Duration) float64 { return d.Round(time.Microsecond).Seconds() }

// percent returns a share in percent, rounded to 0.001; 0 if whole is 0.
func percent(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return math.Round(1e5*float64(part)/float64(whole)) / 1e3
}
