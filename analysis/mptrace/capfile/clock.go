package capfile

import (
	"math/bits"
)

// maxSeconds is the year 2106: later stamps are damage, and are held there so
// that differences of times stay within an int64.
const maxSeconds = 1 << 32

// clock turns the time stamps of an interface into nanoseconds.
type clock struct {
	perSecond uint64 // ticks
	offsetS   int64

	// Stamps below quick take no division: each tick is scale nanoseconds.
	scale, quick uint64
	offsetNS     int64
}

// decimalClock ticks 10^digits times in a second, binaryClock 2^power times;
// perSecond is 0 when that is out of range.
func decimalClock(digits uint8) clock {
	if digits > 19 {
		return clock{}
	}
	perSecond := uint64(1)
	for range digits {
		perSecond *= 10
	}
	return newClock(perSecond)
}

func binaryClock(power uint8) clock {
	if power > 63 {
		return clock{}
	}
	return newClock(1 << power)
}

func newClock(perSecond uint64) clock {
	c := clock{perSecond: perSecond}
	if 1e9%perSecond == 0 {
		c.scale = 1e9 / perSecond
		c.quick = maxSeconds * perSecond
	}
	return c
}

// shift starts the clock some seconds after 1970.
func (c *clock) shift(seconds int64) {
	c.offsetS, c.quick = seconds, 0
	if c.scale > 0 && 0 <= seconds && seconds <= maxSeconds {
		c.offsetNS = seconds * 1e9
		c.quick = uint64(maxSeconds-seconds) * c.perSecond
	}
}

func (c *clock) ns(stamp uint64) int64 {
	if stamp < c.quick {
		return int64(stamp*c.scale) + c.offsetNS
	}
	return c.divide(stamp)
}

func (c *clock) divide(stamp uint64) int64 {
	high, low := bits.Mul64(stamp%c.perSecond, 1e9)
	fraction, _ := bits.Div64(high, low, c.perSecond)
	seconds := stamp / c.perSecond
	if before := uint64(-c.offsetS); c.offsetS < 0 {
		seconds -= min(seconds, before)
	} else {
		seconds = min(seconds, maxSeconds) + uint64(c.offsetS)
	}
	return int64(min(seconds, maxSeconds)*1e9 + fraction)
}
