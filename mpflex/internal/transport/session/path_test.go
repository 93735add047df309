package session

import (
	"testing"

	"mplab/internal/netx"
	"mplab/mpflex/internal/transport/frame"
)

// TestMessageSizes checks that messages are whole segments: one on slow paths, more on
// faster paths.
func TestMessageSizes(t *testing.T) {
	const mss, record, long = 1448, 22, 1 << 20
	for _, c := range []struct {
		mbps     float64
		overhead int    // of TLS
		sent     uint64 // by the stream before
		want     int    // header included
	}{
		{0, 0, 0, mss}, {9, 0, long, mss}, {50, 0, 0, mss},
		{9, record, 0, mss - record}, {9, record, long, 4<<10 - record},
		{100, 0, 0, 4 * mss}, {100, record, long, 4*mss - record},
		{500, 0, 0, 21 * mss}, {500, record, 0, 21*mss - record},
		{10_000, 0, 0, 64 << 10}, {10_000, record, long, 64 << 10},
	} {
		p := &Path{s: &Session{}, link: Link{Overhead: c.overhead}, info: netx.State{MSS: mss}, rate: rateMax{best: c.mbps * 1e6 / 8}}
		if got := p.message(&Stream{next: c.sent}) + frame.HeaderSize; got != c.want {
			t.Errorf("%v Mbit/s, %d bytes of TLS, %d sent: %d bytes instead of %d", c.mbps, c.overhead, c.sent, got, c.want)
		}
	}
}
