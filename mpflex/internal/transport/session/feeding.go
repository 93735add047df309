package session

import (
	"math"
	"time"

	"mplab/internal/netx"
)

// DefaultSendBuffer is how many bytes are committed to each path's TCP if send buffers
// are filled.
const DefaultSendBuffer = 256 << 10

// commit prepares a path whose send buffer is filled. It sets the limit of
// unacknowledged bytes: Config.SendBuffer, or fewer if the kernel grants fewer.
func (p *Path) commit() error {
	if p.s.config.SendBuffer == 0 {
		return nil
	}
	granted, err := netx.SetSendBuffer(p.link.TCP, p.s.config.SendBuffer)
	p.buffer = min(granted, p.s.config.SendBuffer)
	return err
}

// slack returns how many unsent bytes may wait in the kernel. With late binding: two
// segments, or the bytes that leave within 1 ms. Otherwise: the send buffer minus the
// bytes in flight.
func (p *Path) slack() int {
	late := max(2*p.mss(), int(p.rate.max(p.s.nowNS())/1000))
	return max(late, p.buffer-(p.info.Unacked-p.info.Unsent))
}

// queued returns how many bytes are in TCP and not acknowledged. If send buffers are
// filled, one batch is large, so the batch that is about to be written is included.
func (p *Path) queued() int {
	queued := int(p.written - p.delivery)
	if p.buffer > 0 {
		queued += p.pending
	}
	return queued
}

const (
	// ceilingFactor bounds the bytes in flight, in units of the bandwidth-delay product
	// with empty queues. 2 is the factor of BBR.
	ceilingFactor = 2
	// ceilingLeast is the minimum of that bound, as a time at the path's rate.
	ceilingLeast = 20 * time.Millisecond
)

// ceiling returns how many unacknowledged bytes a path may hold. Loss-based congestion
// control fills the queue before the bottleneck. Short streams would then wait there
// behind long ones, despite late binding. BBR keeps the queue short and has its own
// bounds.
func (p *Path) ceiling() int {
	rate := p.rate.max(p.s.nowNS())
	if p.buffer > 0 || p.stats.CongestionControl == "bbr" || rate <= 0 || p.minRTT <= 0 {
		return math.MaxInt
	}
	return max(int(ceilingFactor*rate*p.minRTT.Seconds()), int(rate*ceilingLeast.Seconds()), 10*p.mss())
}

// drain returns when to look again at a path that is at its ceiling; 0: it is below.
// The kernel sends no event when part of the bytes are acknowledged.
func (p *Path) drain() time.Duration {
	const least, most = 200 * time.Microsecond, 10 * time.Millisecond
	excess := p.info.Unacked - p.ceiling()
	if excess < 0 {
		return 0
	}
	return min(max(time.Duration(float64(excess+p.mss())/p.rate.max(p.s.nowNS())*float64(time.Second)), least), most)
}
