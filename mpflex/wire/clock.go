package wire

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"
)

// Skewed: the message is dated more than MaxSkew before or after the proxy's
// clock, which the answer tells.
const Skewed Status = 10

// skewedSize is the size in bytes of the answer Skewed.
const skewedSize = statusSize + 8

// SkewError is the answer Skewed, as the agent reads it.
type SkewError struct {
	Proxy time.Time     // the proxy's clock, to the millisecond
	Ahead time.Duration // of it, by which the agent's was when it read this; negative: behind
}

// Error implements error.
func (e *SkewError) Error() string {
	if e.Ahead.Abs() < MaxSkew {
		return "the clocks agree again: this one was set, and counts from now on"
	}
	return fmt.Sprintf("the clocks differ: this one is %s that of the proxy, which counts from now on", aheadOf(e.Ahead))
}

// aheadOf is a difference in words, to the second.
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

// parseSkewed reads what an authentic answer Skewed says.
func parseSkewed(signed []byte) error {
	proxy := time.UnixMilli(int64(binary.BigEndian.Uint64(signed[headerSize:])))
	return &SkewError{Proxy: proxy, Ahead: -time.Until(proxy)}
}

// Clock dates an agent's messages: by its own clock, corrected by what the proxy
// said last, if it did. The zero Clock is ready; its methods may be used by
// several goroutines.
type Clock struct{ ahead atomic.Int64 } // nanoseconds

// Now is the proxy's time, as far as is known.
func (c *Clock) Now() time.Time { return time.Now().Add(-time.Duration(c.ahead.Load())) }

// Learn takes over what the proxy said.
func (c *Clock) Learn(e *SkewError) { c.ahead.Store(int64(e.Ahead)) }
