package capfile

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestClock compares with exact rational arithmetic.
func TestClock(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var clocks []clock
	for digits := range uint8(20) {
		clocks = append(clocks, decimalClock(digits))
	}
	for power := range uint8(64) {
		clocks = append(clocks, binaryClock(power))
	}
	for _, c := range clocks {
		for _, offset := range []int64{0, 1, -1, 1_700_000_000, -1_700_000_000, maxSeconds, math.MaxInt64, math.MinInt64} {
			c.shift(offset)
			for range 200 {
				stamp := random.Uint64() >> random.IntN(64)
				if got, want := c.ns(stamp), exactNS(c.perSecond, offset, stamp); got != want {
					t.Fatalf("%d ticks at %d per second, %d s later: %d, want %d", stamp, c.perSecond, offset, got, want)
				}
			}
		}
	}
}

// exactNS limits the seconds to 1970–2106 and keeps the fraction.
func exactNS(perSecond uint64, offset int64, stamp uint64) int64 {
	per := new(big.Int).SetUint64(perSecond)
	seconds, ticks := new(big.Int).DivMod(new(big.Int).SetUint64(stamp), per, new(big.Int))
	seconds.Add(seconds, big.NewInt(offset))
	fraction := ticks.Div(ticks.Mul(ticks, big.NewInt(1e9)), per).Int64()
	switch {
	case seconds.Sign() < 0:
		return fraction
	case seconds.Cmp(big.NewInt(maxSeconds)) > 0:
		return maxSeconds*1e9 + fraction
	}
	return seconds.Int64()*1e9 + fraction
}

func TestClockOutOfRange(t *testing.T) {
	if decimalClock(20).perSecond != 0 || binaryClock(64).perSecond != 0 {
		t.Error("a resolution that 64 bits do not hold")
	}
}
