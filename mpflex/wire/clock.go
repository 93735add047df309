package wire

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"
)

// Skewed means that the message's time differs from the proxy's clock by more than
// MaxSkew. The answer contains the proxy's time.
const Skewed Status = 10

// skewedSize is the size of the answer Skewed in bytes.
const skewedSize = statusSize + 8

// SkewError is the answer Skewed at the agent.
type SkewError struct {
	Proxy time.Time     // proxy's time, to the millisecond
	Ahead time.Duration // agent's time minus Proxy when the answer was read
}

// Error implements error.
func (e *SkewError) Error() string {
	if e.Ahead.Abs() < MaxSkew {
		return "the clocks agree again: this one was set, and counts from now on"
	}
	return fmt.Sprintf("the clocks differ: this one is %s that of the proxy, which counts from now on", aheadOf(e.Ahead))
}

// aheadOf formats a clock difference, rounded to seconds.
func aheadOf(d time.Duration) string {
	if d < 0 {
		return (-d).Round(time.Second).String() + " behind"
	}
	return d.Round(time.Second).String() + " ahead of"
}

// AppendSkewed appends the answer Skewed to the hello with this nonce.
func AppendSkewed(b, secret []byte, nonce [NonceSize]byte, now time.Time) []byte {
	start := len(b)
	b = appendSkewed(b, now)
	return append(b, mac(secret, statusLabel, nonce[:], b[start:])...)
}

// AppendSkewedPath appends the answer Skewed to the attach with this nonce on the
// connection with this binding.
func AppendSkewedPath(b, secret []byte, binding Binding, nonce [NonceSize]byte, now time.Time) []byte {
	start := len(b)
	b = appendSkewed(b, now)
	return append(b, mac(secret, attachedLabel, binding[:], nonce[:], b[start:])...)
}

func appendSkewed(b []byte, now time.Time) []byte {
	b = appendHeader(b, byte(Skewed), skewedSize)
	return binary.BigEndian.AppendUint64(b, uint64(now.UnixMilli()))
}

// parseSkewed returns the SkewError of an authentic answer Skewed.
func parseSkewed(signed []byte) error {
	proxy := time.UnixMilli(int64(binary.BigEndian.Uint64(signed[headerSize:])))
	return &SkewError{Proxy: proxy, Ahead: -time.Until(proxy)}
}

// Clock provides the time of an agent's messages: its own clock, corrected by the last
// SkewError. The zero Clock is ready to use. Several goroutines may use it.
type Clock struct{ ahead atomic.Int64 } // nanoseconds

// Now returns the estimated time of the proxy.
func (c *Clock) Now() time.Time { return time.Now().Add(-time.Duration(c.ahead.Load())) }

// Learn corrects the clock by a SkewError.
func (c *Clock) Learn(e *SkewError) { c.ahead.Store(int64(e.Ahead)) }
