package linkem

import "math"

// maxHeldBytes bounds the buffers that one direction holds in queue and delay line together.
const maxHeldBytes = 64 << 20

// lateAfter is what a departure may be behind its time without being counted as late, ns.
const lateAfter = int64(1e6)

// Counters are what happened in one direction of a link since the start. At any time
//
//	packets_in = packets_out + dropped_queue + dropped_loss + dropped_send + dropped_memory + queue_packets + delayed_packets
//
// Bytes are IP bytes.
type Counters struct {
	PacketsIn      uint64  `json:"packets_in"`
	BytesIn        uint64  `json:"bytes_in"`
	PacketsOut     uint64  `json:"packets_out"`
	BytesOut       uint64  `json:"bytes_out"`
	DroppedQueue   uint64  `json:"dropped_queue"`   // the queue was full
	DroppedLoss    uint64  `json:"dropped_loss"`    // random loss
	DroppedSend    uint64  `json:"dropped_send"`    // the kernel did not take it (interface down, no buffers)
	DroppedMemory  uint64  `json:"dropped_memory"`  // maxHeldBytes reached
	QueueBytes     int     `json:"queue_bytes"`     // now, not fully serialised
	QueuePackets   int     `json:"queue_packets"`   // now, not fully serialised
	DelayedPackets int     `json:"delayed_packets"` // now, serialised and under way
	OversizeFrames uint64  `json:"oversize_frames"` // larger than the interface's MTU: segmentation offload is on somewhere
	LatePackets    uint64  `json:"late_packets"`    // sent more than lateAfter behind their time
	LatestMs       float64 `json:"latest_ms"`       // the largest such delay since the conditions were last changed
	KernelDropped  uint64  `json:"kernel_dropped"`  // never seen by the emulator: the receive ring was full
}

// direction is the model of one direction of a link: random loss, drop-tail queue, serialisation, delay. It has no clock
// and no lock of its own; times are those that the caller gives.
//
// A packet starts to be serialised at start = max(arrival, end of the one before) and ends at start + 8·bytes/rate.
// Until then it counts as queued. Then it is under way for delay + jitter + delay of its prefix.
type direction struct {
	params     Params
	nsPerByte  float64 // 0: unlimited
	delay      int64   // ns
	jitter     int64   // ns
	fate       fate
	prefixes   *prefixDelays
	pool       framePool
	counters   Counters
	heldBytes  int // buffers in queue and line
	changed    int64
	queue      frameQueue
	queueBytes int
	headEnd    int64 // when the first of the queue is serialised
	lastEnd    int64 // when the last that left the queue was serialised
	line       delayLine
	released   []int64 // by class: latest departure given so far
}

// newDirection makes an idle direction.
func newDirection(params Params, prefixes *prefixDelays, fate fate) *direction {
	d := &direction{prefixes: prefixes, released: make([]int64, len(prefixes.delay))}
	for i := range d.released {
		d.released[i] = math.MinInt64
	}
	d.changed, d.lastEnd = math.MinInt64, math.MinInt64
	d.set(params, fate)
	return d
}

// change replaces the conditions at the time now. No packet is lost by it: queued packets go on at the new rate (the
// part of the first one that is already serialised stays so) and get the new delay; packets under way keep their
// departure time; later ones do not overtake them. A queue that is above a smaller limit drains.
func (d *direction) change(now int64, params Params, fate fate) {
	d.advance(now)
	remaining := 0.0 // bytes of the first packet not serialised yet
	if d.queue.count > 0 && d.nsPerByte > 0 {
		remaining = float64(d.headEnd-now) / d.nsPerByte
	}
	d.set(params, fate)
	d.changed = now
	d.counters.LatestMs = 0
	if d.queue.count > 0 {
		d.headEnd = now + int64(math.Round(remaining*d.nsPerByte))
	}
	d.advance(now)
}

func (d *direction) set(params Params, fate fate) {
	d.params, d.fate = params, fate
	d.delay, d.jitter = nanoseconds(params.DelayMs), nanoseconds(params.JitterMs)
	d.nsPerByte = 0
	if params.RateKbps > 0 {
		d.nsPerByte = 8e6 / params.RateKbps
	}
}

// arrive takes a frame that came in at the time arrival, and says whether it was kept; if not, it is dropped and counted.
// Non-IP frames (ARP among them) are never lost at random.
func (d *direction) arrive(arrival int64, f *frame) bool {
	f.arrival = max(arrival, d.changed)
	d.advance(f.arrival)
	d.counters.PacketsIn++
	d.counters.BytesIn += uint64(f.bytes)
	switch {
	case f.ip && d.fate.lost(d.params.LossPercent):
		d.counters.DroppedLoss++
		return false
	case d.full(f.bytes):
		d.counters.DroppedQueue++
		return false
	case d.heldBytes+cap(f.data) > maxHeldBytes:
		d.counters.DroppedMemory++
		return false
	}
	d.heldBytes += cap(f.data)
	d.queue.push(f)
	d.queueBytes += f.bytes
	if d.queue.count == 1 {
		d.headEnd = d.endOf(f)
	}
	d.advance(f.arrival)
	return true
}

// full says whether a packet of so many bytes finds no room. Without a rate nothing waits, and nothing is refused.
func (d *direction) full(bytes int) bool {
	if d.nsPerByte == 0 {
		return false
	}
	limit := d.params.Queue
	return limit.Bytes > 0 && d.queueBytes+bytes > limit.Bytes || limit.Packets > 0 && d.queue.count+1 > limit.Packets
}

// endOf gives the end of the serialisation of a frame that is now the first of the queue.
func (d *direction) endOf(f *frame) int64 {
	return max(f.arrival, d.lastEnd) + int64(math.Round(float64(f.bytes)*d.nsPerByte))
}

// advance moves what is serialised by the time now from the queue to the delay line.
func (d *direction) advance(now int64) {
	for d.queue.count > 0 && d.headEnd <= now {
		f := d.queue.pop()
		d.queueBytes -= f.bytes
		d.lastEnd = d.headEnd
		d.line.push(d.releaseOf(f, d.lastEnd), f)
		if d.queue.count > 0 {
			d.headEnd = d.endOf(d.queue.first())
		}
	}
}

// releaseOf gives the departure of a frame serialised at end; never before that of an earlier frame of its class.
func (d *direction) releaseOf(f *frame, end int64) int64 {
	way := max(d.delay+d.fate.offset(d.jitter), 0) + d.prefixes.delay[f.class]
	release := max(end+way, d.released[f.class])
	d.released[f.class] = release
	return release
}

// due gives the next frame that departs by the time now, or nil. The caller sends it and reports sent or sendFailed.
func (d *direction) due(now int64) *frame {
	d.advance(now)
	if d.line.len() == 0 || d.line.next() > now {
		return nil
	}
	if late := now - d.line.next(); late > lateAfter {
		d.counters.LatePackets++
		d.counters.LatestMs = max(d.counters.LatestMs, float64(late)/1e6)
	}
	return d.line.pop()
}

// next gives a time before which no frame departs; false when there is none to depart.
func (d *direction) next() (int64, bool) {
	next := int64(math.MaxInt64)
	if d.line.len() > 0 {
		next = d.line.next()
	}
	if d.queue.count > 0 {
		next = min(next, d.headEnd+d.shortestWay())
	}
	return next, next != math.MaxInt64
}

// shortestWay gives the least time between the end of serialisation and the departure, ns.
func (d *direction) shortestWay() int64 { return max(d.delay-d.jitter, 0) }

// sent takes back a frame that due gave and that was sent.
func (d *direction) sent(f *frame) {
	d.counters.PacketsOut++
	d.counters.BytesOut += uint64(f.bytes)
	d.release(f)
}

// sendFailed takes back a frame that due gave and that the kernel refused.
func (d *direction) sendFailed(f *frame) {
	d.counters.DroppedSend++
	d.release(f)
}

func (d *direction) release(f *frame) {
	d.heldBytes -= cap(f.data)
	d.pool.put(f)
}

// countersAt gives the counters at the time now.
func (d *direction) countersAt(now int64) Counters {
	d.advance(now)
	c := d.counters
	c.QueueBytes, c.QueuePackets, c.DelayedPackets = d.queueBytes, d.queue.count, d.line.len()
	return c
}
