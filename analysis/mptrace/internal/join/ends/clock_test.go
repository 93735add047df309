package ends

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestHullHoldsTheLowestForEverySlope(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var h hull
		var all []point
		for x := range 1 + random.IntN(60) {
			p := point{float64(x / 2), float64(random.IntN(1000))}
			h.add(p)
			all = append(all, p)
		}
		for _, slope := range []float64{-500, -10, -1, 0, 0.5, 3, 200} {
			if want := (hull)(all).low(slope); h.low(slope) != want {
				t.Fatalf("slope %f: %f, not %f, of %v", slope, h.low(slope), want, all)
			}
		}
		for i := 2; i < len(h); i++ {
			if !convex(h[i-2], h[i-1], h[i]) {
				t.Fatalf("%v", h)
			}
		}
	}
}

// delayOf returns the delay in ns at a time in s.
type delayOf func(random *rand.Rand, s float64) float64

func steady(ms float64) delayOf {
	return func(r *rand.Rand, _ float64) float64 { return (ms + r.ExpFloat64()*0.5) * 1e6 }
}

func TestClock(t *testing.T) {
	for _, c := range []struct {
		name          string
		seconds       float64
		up, down      delayOf
		offset, drift float64 // ms, ppm
		within        float64 // ms; maximum error of the offset
		driftWithin   float64
		unknown       bool // unknown drift
	}{
		{"steady", 60, steady(20), steady(20), 5000, 30, 0.1, 3, false},
		{"other sign", 60, steady(20), steady(20), -5000, -30, 0.1, 3, false},
		{"asymmetric: half of the difference is the error", 60, steady(20), steady(30), 0, 0, 5.1, 3, false},
		{"a queue that grows in one direction", 60, steady(20), func(r *rand.Rand, s float64) float64 {
			return (20 + math.Min(s*30, 200) + r.ExpFloat64()*20*s) * 1e6
		}, 700, 40, 0.2, 5, false},
		{"a route that becomes shorter", 60, func(r *rand.Rand, s float64) float64 {
			return (30 - 10*math.Floor(s/30) + r.ExpFloat64()*0.2) * 1e6
		}, func(r *rand.Rand, s float64) float64 {
			return (30 - 10*math.Floor(s/30) + r.ExpFloat64()*0.2) * 1e6
		}, 10, 20, 1, 100, true},
		{"too short for a drift", 0.2, steady(20), steady(20), 40, 50, 0.2, 0, true},
		{"noise", 5, func(r *rand.Rand, s float64) float64 { return (20 + r.Float64()*80) * 1e6 }, func(r *rand.Rand, s float64) float64 {
			return (20 + r.Float64()*80) * 1e6
		}, 40, 50, 10, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(3, 4))
			e := newEnvelope(line{start: simStart}, c.seconds*1e9)
			offset := func(ns float64) float64 { return c.offset*1e6 + c.drift*ppm*ns }
			last := [2]float64{}
			for i := range 4000 {
				x := c.seconds * 1e9 * float64(i) / 4000
				up := max(c.up(random, x/1e9), last[Up]-x+1)
				down := max(c.down(random, x/1e9), last[Down]-x+1)
				last = [2]float64{x + up, x + down}
				e.add(0, Up, simStart+int64(x), simStart+int64(x+up+offset(x+up)))
				e.add(0, Down, simStart+int64(x+offset(x)), simStart+int64(x+down))
			}
			l, clock := e.estimate(func(int32) string { return "wlan0" })
			if off := math.Abs(clock.OffsetMS - c.offset); off > c.within || off > clock.UncertaintyMS || !clock.Known {
				t.Errorf("offset %f ± %f ms, truth %f", clock.OffsetMS, clock.UncertaintyMS, c.offset)
			}
			if clock.DriftKnown == c.unknown {
				t.Errorf("drift %+v", clock)
			}
			if off := math.Abs(clock.DriftPPM - c.drift); clock.DriftKnown && (off > c.driftWithin || off > clock.DriftErrorPPM) {
				t.Errorf("drift %f ± %f ppm, truth %f", clock.DriftPPM, clock.DriftErrorPPM, c.drift)
			}
			for _, ns := range []float64{0, c.seconds * 1e9} {
				back := float64(l.phone(simStart+int64(ns+l.offset+l.slope*ns)) - simStart)
				if math.Abs(back-ns) > 2 {
					t.Errorf("%f came back as %f", ns, back)
				}
			}
		})
	}
}

func TestTheTightestPathGivesTheOffset(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	e := newEnvelope(line{start: simStart}, 30e9)
	for i := range 4000 {
		x := int64(i) * 30e9 / 4000
		for path, delays := range [][2]delayOf{{steady(40), steady(80)}, {steady(10), steady(10)}} {
			e.add(int32(path), Up, simStart+x, simStart+x+int64(delays[Up](random, 0))+7e6)
			e.add(int32(path), Down, simStart+x+7e6, simStart+x+int64(delays[Down](random, 0)))
		}
	}
	_, clock := e.estimate(func(n int32) string { return []string{"wlan0", "rmnet0"}[n] })
	if clock.Path != "rmnet0" || math.Abs(clock.OffsetMS-7) > 0.1 || math.Abs(clock.UncertaintyMS-10) > 0.1 {
		t.Errorf("%+v", clock)
	}
}

func TestOneDirectionAloneLeavesTheClockUnknown(t *testing.T) {
	e := newEnvelope(line{start: simStart}, 1e9)
	for i := range int64(100) {
		e.add(0, Up, simStart+i*1e7, simStart+i*1e7+33e6+i%7*1e6)
	}
	_, clock := e.estimate(func(int32) string { return "" })
	if clock.Known || clock.OffsetMS != 33 {
		t.Errorf("%+v", clock)
	}
}
