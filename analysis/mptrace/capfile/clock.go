package capfile

import (
	"math/bits"
)

// maxSeconds is the year 2106. A later time stamp is damage and is limited to
// this value, so that the difference of two times fits into an int64.
const maxSeconds = 1 << 32

// clock converts the time stamps of an interface into nanoseconds.
type clock struct {
	perSecond uint64 // ticks per second
	offsetS   int64

	// Stamps below quick need no division: each tick is scale nanoseconds.
	scale, quick uint64
	offsetNS     int64
}

// decimalClock returns a clock of 10^digits ticks per second, binaryClock one
// of 2^power ticks per second. If the rate is out of range, perSecond is 0.
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

// shift sets the origin of the clock, in seconds after 1970.
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
