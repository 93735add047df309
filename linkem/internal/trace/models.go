package trace

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Constant returns a trace of a constant rate in kbit/s of IP bytes, in packets of MTU bytes. It is the shortest exact
// trace; its opportunities are at the earliest whole milliseconds that the rate allows.
func Constant(kbps int) (*Trace, error) {
	if kbps < 1 || kbps > 10_000_000 {
		return nil, fmt.Errorf("a constant rate is from 1 to 10000000 kbit/s, not %d", kbps)
	}
	common := gcd(kbps, bitsPerPacket)
	length, count := bitsPerPacket/common, kbps/common
	ms := make([]uint32, count)
	for i := range ms {
		ms[i] = uint32(((i+1)*length + count - 1) / count)
	}
	return New(ms)
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Walking is a Markov chain over signal levels, from the best to the worst. At each step the level stays, or changes to
// a neighbour with equal probability. Within a level, opportunities are evenly spaced. It starts at the best level.
// Equal seeds yield equal sequences of levels, independent of their rates, so that both directions of a link can fade
// together.
type Walking struct {
	LevelsKbps []int   // at least two
	StepMs     int     // minimum duration of a level
	Stay       float64 // probability to stay for another step
	Seconds    int
	Seed       uint64
}

// Make returns a trace of exactly the requested duration: its last millisecond always has an opportunity.
func (w Walking) Make() (*Trace, error) {
	switch {
	case len(w.LevelsKbps) < 2:
		return nil, errors.New("a walk needs two levels or more")
	case slices.Min(w.LevelsKbps) < 0 || slices.Max(w.LevelsKbps) > 1_000_000:
		return nil, errors.New("levels are from 0 to 1000000 kbit/s")
	case w.StepMs < 1 || w.Stay < 0 || w.Stay >= 1:
		return nil, errors.New("a step is at least 1 ms long, and the chance to stay from 0 to below 1")
	}
	if err := checkSeconds(w.Seconds); err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(w.Seed, walkingStream))
	level, credit := 0, 0 // credit is in bits
	var ms []uint32
	for at := 1; at <= w.Seconds*1000; at++ {
		if at > 1 && (at-1)%w.StepMs == 0 {
			level = w.step(level, random.Float64())
		}
		for credit += w.LevelsKbps[level]; credit >= bitsPerPacket; credit -= bitsPerPacket {
			ms = append(ms, uint32(at))
		}
	}
	return New(ended(ms, w.Seconds))
}

func (w Walking) step(level int, chance float64) int {
	switch last := len(w.LevelsKbps) - 1; {
	case chance < w.Stay:
		return level
	case level == 0:
		return 1
	case level == last:
		return last - 1
	case chance < w.Stay+(1-w.Stay)/2:
		return level - 1
	default:
		return level + 1
	}
}

// Driving is Sprout's model of a cellular link (Winstein, Sivaraman and Balakrishnan, NSDI 2013, §3.1). Packets are
// delivered by a Poisson process whose rate follows a Brownian motion between 0 and MostKbps. At 0 it stays until it
// escapes from the outage. It starts at half of MostKbps.
type Driving struct {
	MostKbps  float64
	SigmaKbps float64 // per square root of a second
	Escape    float64 // from an outage, per second
	Seconds   int
	Seed      uint64
}

const drivingTick = 20 // in ms, as in Sprout

// Streams of random numbers; they must differ.
const (
	walkingStream = 1
	drivingStream = 2
)

// Make returns a trace of exactly the requested duration: its last millisecond always has an opportunity.
func (d Driving) Make() (*Trace, error) {
	if !(d.MostKbps > 0 && d.MostKbps <= 1_000_000) || !(d.SigmaKbps > 0 && d.SigmaKbps <= 1_000_000) || !(d.Escape > 0 && d.Escape <= 1000) {
		return nil, errors.New("the most and sigma are above 0, up to 1000000 kbit/s, and the rate of escape above 0, up to 1000 per second")
	}
	if err := checkSeconds(d.Seconds); err != nil {
		return nil, err
	}
	const tick = drivingTick / 1000.0 // s
	random := rand.New(rand.NewPCG(d.Seed, drivingStream))
	kbps := d.MostKbps / 2
	var ms []uint32
	for begin := 0; begin < d.Seconds*1000; begin += drivingTick {
		from := len(ms)
		for range poisson(random, kbps*drivingTick/bitsPerPacket) {
			ms = append(ms, uint32(begin+1+random.IntN(drivingTick)))
		}
		slices.Sort(ms[from:])
		noise := random.NormFloat64() * d.SigmaKbps * math.Sqrt(tick)
		escape := random.Float64() < 1-math.Exp(-d.Escape*tick)
		switch {
		case kbps > 0:
			kbps += noise
		case escape:
			kbps = math.Abs(noise)
		}
		kbps = min(max(kbps, 0), d.MostKbps)
	}
	return New(ended(ms, d.Seconds))
}

// poisson draws a Poisson-distributed number with the given expectation, from exponential gaps.
func poisson(random *rand.Rand, expected float64) (n int) {
	for sum := random.ExpFloat64(); sum < expected; sum += random.ExpFloat64() {
		n++
	}
	return n
}

func checkSeconds(seconds int) error {
	if seconds < 1 || seconds > LongestMs/1000 {
		return fmt.Errorf("a trace lasts from 1 to %d seconds, not %d", LongestMs/1000, seconds)
	}
	return nil
}

// ended adds a missing opportunity at the last millisecond.
func ended(ms []uint32, seconds int) []uint32 {
	end := uint32(seconds * 1000)
	if len(ms) == 0 || ms[len(ms)-1] < end {
		ms = append(ms, end)
	}
	return ms
}
