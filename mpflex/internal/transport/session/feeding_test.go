package session

import (
	"math"
	"testing"
	"time"

	"mplab/internal/netx"
)

// TestCeiling: the bytes in flight on a path are bounded by its rate and RTT, except
// with BBR or filled send buffers.
func TestCeiling(t *testing.T) {
	const wifi, gigabit = 880_000, 125_000_000 // bytes per second
	for _, c := range []struct {
		name       string
		rate       float64
		rtt        time.Duration
		congestion string
		buffer     int
		want       int
	}{
		{"twice what is under way", wifi, 50 * time.Millisecond, "cubic", 0, 88_000},
		{"a slow path has ten segments", 10_000, 50 * time.Millisecond, "cubic", 0, 14_480},
		{"a short one has 20 ms", gigabit, 100 * time.Microsecond, "cubic", 0, 2_500_000},
		{"not before its rate is known", 0, 50 * time.Millisecond, "cubic", 0, math.MaxInt},
		{"BBR", wifi, 50 * time.Millisecond, "bbr", 0, math.MaxInt},
		{"buffered", wifi, 50 * time.Millisecond, "cubic", 256 << 10, math.MaxInt},
	} {
		p := &Path{s: &Session{begun: time.Now()}, minRTT: c.rtt, buffer: c.buffer, info: netx.State{MSS: 1448}}
		p.stats.CongestionControl = c.congestion
		if c.rate > 0 {
			p.rate.add(0, c.rate)
		}
		if got := p.ceiling(); got != c.want {
			t.Errorf("%s: %d bytes, want %d", c.name, got, c.want)
		}
		if p.info.Unacked = c.want / 2; p.space() <= 0 || p.drain() != 0 {
			t.Errorf("%s: no room below the ceiling", c.name)
		}
		if c.want == math.MaxInt {
			continue
		}
		p.info.Unacked = c.want + 10_000
		if p.space() > 0 || p.drain() < 200*time.Microsecond || p.drain() > 10*time.Millisecond {
			t.Errorf("%s: room %d and %v at the ceiling", c.name, p.space(), p.drain())
		}
	}
}
