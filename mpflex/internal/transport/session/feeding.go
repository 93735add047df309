package session

import (
	"math"
	"time"

	"mplab/internal/netx"
)

// DefaultSendBuffer is how much is committed to the TCP of each path where its
// send buffer is to be filled.
const DefaultSendBuffer = 256 << 10

// commit prepares a path whose send buffer is to be filled: what may be written
// to TCP and not acknowledged is as much as was asked for, or as much as the
// kernel takes without letting the writer wait.
func (p *Path) commit() error {
	if p.s.config.SendBuffer == 0 {
		return nil
	}
	granted, err := netx.SetSendBuffer(p.link.TCP, p.s.config.SendBuffer)
	p.buffer = min(granted, p.s.config.SendBuffer)
	return err
}

// slack is how many bytes may wait in the kernel beyond what it has sent. With
// late binding these are two segments, or what leaves within a millisecond;
// else what the send buffer has room for beside what is under way.
func (p *Path) slack() int {
	late := max(2*p.mss(), int(p.rate.max(p.s.nowNS())/1000))
	return max(late, p.buffer-(p.info.Unacked-p.info.Unsent))
}

// queued is what TCP was given and the other side has not acknowledged. Where
// send buffers are filled that is much at a time, so what is about to be written
// counts, too.
func (p *Path) queued() int {
	queued := int(p.written - p.delivery)
	if p.buffer > 0 {
		queued += p.pending
	}
	return queued
}

const (
	// ceilingFactor is how many times what a path holds while the queues on its
	// way are empty it is given at most: the factor of BBR.
	ceilingFactor = 2
	// ceilingLeast is what a path may hold however short its round trip is, as a
	// time at its rate.
	ceilingLeast = 20 * time.Millisecond
)

// ceiling is how many bytes that are not acknowledged a path may hold. Congestion
// control that looks for losses fills the queue before the bottleneck, in which
// short streams would wait behind long ones, however late these are bound. BBR
// does not, and has bounds of its own.
func (p *Path) ceiling() int {
	rate := p.rate.max(p.s.nowNS())
	if p.buffer > 0 || p.stats.CongestionControl == "bbr" || rate <= 0 || p.minRTT <= 0 {
		return math.MaxInt
	}
	return max(int(ceilingFactor*rate*p.minRTT.Seconds()), int(rate*ceilingLeast.Seconds()), 10*p.mss())
}

// drain is after how long a path that is at its ceiling may be looked at again;
// 0: it is not. The kernel does not tell when some of it has been acknowledged.
func (p *Path) drain() time.Duration {
	const least, most = 200 * time.Microsecond, 10 * time.Millisecond
	excess := p.info.Unacked - p.ceiling()
	if excess < 0 {
		return 0
	}
	return min(max(time.Duration(float64(excess+p.mss())/p.rate.max(p.s.nowNS())*float64(time.Second)), least), most)
}
