package mptcp

import (
	"slices"

	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
)

const (
	// tightWindow is the limit in bytes: with less left in the receive window,
	// a sender counts as blocked by the window, as in Baerts and De Coninck,
	// "Multipath TCP with real Smartphone applications", §5.3.3.
	tightWindow = 5000
	// minRTONS is the minimum retransmission timeout of Linux, firstRTONS the
	// timeout before the first round-trip sample (RFC 6298 §2.1).
	minRTONS   = 200e6
	firstRTONS = 1e9
)

// takeDataAck processes the DATA_ACK of the side that sends h.
func (e *Engine) takeDataAck(h *half, ack uint64, wide bool, window uint32) {
	s, own := h.sub, h.data
	d := &s.Conn.multi.data[1-h.dir]
	own.lastACK, own.lastWindow = ack, window
	if !d.started {
		d.start(s.Conn, 1-h.dir, ack, wide)
	}
	own.announced(window)
	e.acknowledge(s, d, 1-h.dir, d.relative(ack, wide), window)
}

// repeats counts a DATA_ACK and window that are equal to the previous ones of
// this side, as with most data, and reports whether they are.
func (d *direction) repeats(ack uint64, window uint32) bool {
	if ack != d.lastACK || window != d.lastWindow || d.windows == 0 {
		return false
	}
	d.windows++
	d.windowSum += uint64(window)
	return true
}

// announced updates the receive window statistics.
func (d *direction) announced(window uint32) {
	if window < d.windowMin || d.windows == 0 {
		d.windowMin = window
	}
	if window > d.windowMax {
		d.windowMax = window
	}
	if window == 0 {
		d.zeroWindows++
	}
	d.windowSum += uint64(window)
	d.windows++
}

// acknowledge processes the acknowledgement of all data of a direction below a
// relative number, and the window beyond it.
func (e *Engine) acknowledge(s *Sub, d *direction, dir uint8, upTo uint64, window uint32) {
	if upTo > d.edge+maxJump {
		return
	}
	if upTo > d.acked {
		e.advance(d, upTo)
	}
	if s.syn != synMissing { // otherwise the window scale is unknown
		if right := upTo + uint64(window); right > d.right {
			d.right = right
		}
		if d.edge+tightWindow > d.right {
			d.tightNS = e.nowNS
		}
	}
	if e.observer != nil && upTo >= d.origin {
		e.observer.Ack(s, int(dir), e.nowNS, upTo-d.origin, window)
	}
}

// advance processes a DATA_ACK above the highest one so far.
func (e *Engine) advance(d *direction, upTo uint64) {
	now, size := e.nowNS, upTo-d.acked
	if d.finNS != 0 && upTo > d.finAt {
		size--
		if d.finACKNS == 0 {
			d.finACKNS = now
		}
	}
	d.acked = upTo
	if size == 0 {
		return
	}
	if d.firstACKNS == 0 {
		d.firstACKNS, d.initial = now, d.unique
		d.rtt.Limit = int32(e.options.Samples)
	}
	d.lastACKNS = now
	d.ackSizes.Add(size)
	for i := 0; i < len(d.carriers); {
		h := d.carriers[i]
		h.acknowledged(upTo, now)
		if h.sent.waiting() {
			i++
		} else {
			d.carriers = slices.Delete(d.carriers, i, i+1)
		}
	}
}

// acknowledged adds the round trips of the data that a subflow carried. Each
// segment yields one sample, from its first sight to the DATA_ACK that covers
// it.
func (h *half) acknowledged(upTo uint64, now int64) {
	segments := h.sent.segments
	n := h.sent.acked
	for n < len(segments) && segments[n].hi <= upTo {
		h.data.rtt.Add(now, now-segments[n].timeNS)
		n++
	}
	if n > h.sent.acked {
		h.smooth(now - segments[n-1].timeNS)
		h.sent.acked = n
	}
}

// smooth updates the smoothed round trip and its variation (RFC 6298 §2).
func (h *half) smooth(rtt int64) {
	if h.srttNS == 0 {
		h.srttNS, h.varNS = rtt, rtt/2
		return
	}
	delta := rtt - h.srttNS
	h.srttNS += delta / 8
	h.varNS += (max(delta, -delta) - h.varNS) / 4
}

// rto estimates the sender's retransmission timeout.
func (h *half) rto() int64 {
	if h.srttNS == 0 {
		return firstRTONS
	}
	return max(minRTONS, h.srttNS+4*h.varNS)
}

// plainAck processes the ACK of a connection that fell back: its data is now
// acknowledged by TCP sequence number.
func (e *Engine) plainAck(s *Sub, dir uint8, seg *tcp.Segment) {
	h := s.half[1-dir]
	if h == nil || len(h.maps) == 0 || seg.Packet.Has&packet.HasDSS != 0 {
		return
	}
	if m := &h.maps[len(h.maps)-1]; seg.Ack >= m.lo {
		e.acknowledge(s, &s.Conn.multi.data[1-dir], 1-dir, m.dsn+(seg.Ack-m.lo), seg.Window)
	}
}
