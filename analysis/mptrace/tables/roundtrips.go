package tables

import "mplab/analysis/mptrace/internal/hist"

// RoundTrips fills in the round-trip columns. The samples of s are in
// nanoseconds.
func (row *Direction) RoundTrips(s *hist.Series) {
	row.RTTSamples = s.N()
	if row.RTTSamples == 0 {
		return
	}
	ms := func(ns float64) Maybe[float64] { return Just(ns / 1e6) }
	row.RTTMinMS, row.RTTMaxMS, row.RTTLastMS = ms(float64(s.Min())), ms(float64(s.Max())), ms(float64(s.Last()))
	row.RTTMeanMS = ms(s.Mean())
	if row.RTTSamples > 1 {
		row.RTTStdevMS = ms(s.Stdev())
	}
	var buffer [8]float64
	q := s.Quantiles(buffer[:0], .25, .5, .75, .90, .95, .97, .98, .99)
	row.RTTP25MS, row.RTTP50MS, row.RTTP75MS, row.RTTP90MS = ms(q[0]), ms(q[1]), ms(q[2]), ms(q[3])
	row.RTTP95MS, row.RTTP97MS, row.RTTP98MS, row.RTTP99MS = ms(q[4]), ms(q[5]), ms(q[6]), ms(q[7])
}
