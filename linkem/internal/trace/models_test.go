package trace

import (
	"math"
	"slices"
	"testing"
)

func TestConstantIsExactAndShort(t *testing.T) {
	for kbps, want := range map[int][]uint32{
		12_000: {1},
		6000:   {2},
		24_000: {1, 1},
		5000:   {3, 5, 8, 10, 12},
		1:      {12_000},
	} {
		made, err := Constant(kbps)
		if err != nil || !slices.Equal(made.ms, want) {
			t.Errorf("%d kbit/s: %v, %v, want %v", kbps, made, err, want)
		}
	}
	for kbps := 7; kbps < 100_000; kbps = kbps*3 + 1 {
		made, err := Constant(kbps)
		if err != nil {
			t.Fatal(err)
		}
		if got := made.Summarise().MeanKbps; math.Abs(got/float64(kbps)-1) > 1e-12 {
			t.Errorf("%d kbit/s: offers %g", kbps, got)
		}
		for i := range made.Len() { // less than 1 ms behind the rate, and never ahead of it
			ideal := float64(i+1) * bitsPerPacket / float64(kbps)
			if late := float64(made.At(i)) - ideal; late < -1e-6 || late >= 1 {
				t.Fatalf("%d kbit/s: opportunity %d at %d ms, want %g", kbps, i, made.At(i), ideal)
			}
		}
	}
	if _, err := Constant(0); err == nil {
		t.Error("no rate is a constant rate")
	}
}

func TestWalkingKeepsToItsLevels(t *testing.T) {
	walk := Walking{LevelsKbps: []int{12_000, 6000, 1200, 0}, StepMs: 1000, Stay: 0.5, Seconds: 3600, Seed: 5}
	made, err := walk.Make()
	if err != nil {
		t.Fatal(err)
	}
	counts := make([]int, walk.Seconds)
	for i := range made.Len() {
		counts[secondOf(made.At(i))]++
	}
	seconds, changes, last := make([]int, 4), 0, 0
	for i, count := range counts {
		level := slices.IndexFunc(walk.LevelsKbps, func(kbps int) bool { return math.Abs(float64(count-kbps/12)) <= 1 })
		if level < 0 || level-last > 1 || last-level > 1 {
			t.Fatalf("second %d has %d opportunities after level %d", i, count, last)
		}
		if level != last {
			changes++
		}
		seconds[level]++
		last = level
	}
	// A walk that turns back at its ends is in each middle level twice as long as at an end.
	for level, want := range []float64{1. / 6, 1. / 3, 1. / 3, 1. / 6} {
		if share := float64(seconds[level]) / 3600; math.Abs(share-want) > 0.06 {
			t.Errorf("%.3f of the time in level %d, want %.3f", share, level, want)
		}
	}
	if share := float64(changes) / 3600; math.Abs(share-0.5) > 0.03 {
		t.Errorf("%.3f of the steps change the level, want 0.5", share)
	}
	other := walk
	other.LevelsKbps = []int{1200, 600, 120, 0}
	slow, err := other.Make()
	if err != nil || slow.LengthMs() != 3_600_000 {
		t.Fatalf("%v, %v", slow.LengthMs(), err)
	}
	if ratio := float64(made.Len()) / float64(slow.Len()); math.Abs(ratio-10) > 0.1 {
		t.Errorf("the same walk at a tenth of the rates offers 1/%.2f", ratio)
	}
}

func TestDrivingWandersAndPauses(t *testing.T) {
	made, err := Driving{MostKbps: 12_000, SigmaKbps: 2400, Escape: 1, Seconds: 7200, Seed: 5}.Make()
	if err != nil {
		t.Fatal(err)
	}
	ticks := make([]float64, 7200*1000/drivingTick)
	for i := range made.Len() {
		ticks[(made.At(i)-1)/drivingTick]++
	}
	most, still, sum, pairs := 0.0, 0, 0.0, 0.0
	for i, n := range ticks {
		most = max(most, n)
		if i >= 100 && n+ticks[i-1] == 0 && slices.Max(ticks[i-100:i+1]) == 0 {
			still++ // two seconds without an opportunity
		}
		// Neighbouring ticks have nearly the same rate, so the variance of their difference is that of two draws.
		if i > 0 {
			sum += n + ticks[i-1]
			pairs += (n - ticks[i-1]) * (n - ticks[i-1])
		}
	}
	if ratio := pairs / sum; math.Abs(ratio-1) > 0.08 {
		t.Errorf("variance over mean is %.3f, and 1 for Poisson's process", ratio)
	}
	if most < 30 || most > 50 { // at most 20 are expected
		t.Errorf("at most %.0f opportunities in a tick", most)
	}
	if still == 0 || still > len(ticks)/2 {
		t.Errorf("%d of %d ticks are deep in an outage", still, len(ticks))
	}
}

func TestModelsRefuseNonsense(t *testing.T) {
	for _, make := range []interface{ Make() (*Trace, error) }{
		Walking{LevelsKbps: []int{1}, StepMs: 1, Seconds: 1},
		Walking{LevelsKbps: []int{1, -1}, StepMs: 1, Seconds: 1},
		Walking{LevelsKbps: []int{1, 0}, StepMs: 0, Seconds: 1},
		Walking{LevelsKbps: []int{1, 0}, StepMs: 1, Stay: 1, Seconds: 1},
		Walking{LevelsKbps: []int{1, 0}, StepMs: 1, Seconds: 0},
		Driving{MostKbps: 0, SigmaKbps: 1, Escape: 1, Seconds: 1},
		Driving{MostKbps: 1, SigmaKbps: math.NaN(), Escape: 1, Seconds: 1},
		Driving{MostKbps: 1, SigmaKbps: 1, Escape: 1, Seconds: 1e9},
	} {
		if made, err := make.Make(); err == nil {
			t.Errorf("%+v: made %d opportunities", make, made.Len())
		}
	}
}
