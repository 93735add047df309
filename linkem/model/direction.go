package model

import "math"

// maxHeldBytes is the maximum size of the buffers in queue and delay line of one direction.
const maxHeldBytes = 64 << 20

// lateAfter is the delay after which a departure counts as late, in ns.
const lateAfter = int64(1e6)

// Direction is the model of one direction of a link: loss, queue, serialisation, delay. It has no clock and no lock;
// the caller passes all times.
//
// A packet waits in the queue until the server starts with it, and counts as queued until it is serialised. Then it is
// in flight for delay + jitter + delay of its prefix.
type Direction struct {
	params     Params
	delay      int64   // ns
	jitter     float64 // ns
	spread     distribution
	chance     *Chance
	losing     bool // the last IP packet was lost
	prefixes   *PrefixDelays
	pool       framePool
	counters   Counters
	heldBytes  int // size of the buffers in queue and line
	changed    int64
	admitted   uint64
	waiting    discipline
	server     serialiser
	service    *Frame // frame being serialised; nil: the server is idle
	serviceEnd int64  // when service is serialised
	beginAt    int64  // if the server is idle and packets wait: start of the next service
	line       delayLine
	released   []int64 // by class: latest departure so far
}

// NewDirection returns an idle direction. A trace starts at the time 0.
func NewDirection(params Params, prefixes *PrefixDelays, chance *Chance) *Direction {
	d := &Direction{prefixes: prefixes, released: make([]int64, len(prefixes.delay))}
	for i := range d.released {
		d.released[i] = math.MinInt64
	}
	d.changed = math.MinInt64
	d.set(0, params, chance)
	return d
}

// Change replaces the conditions at the time now without losing a packet. Queued packets continue at the new rate and
// get the new delay; the part of the current packet that is already serialised stays serialised. Packets in flight keep
// their departure time, and later packets do not overtake them. A queue above a smaller limit drains. A trace starts
// now. If chance is nil, the old random sequences continue, and so does an unchanged trace.
func (d *Direction) Change(now int64, params Params, chance *Chance) {
	d.advance(now)
	before, server := d.params, d.server
	d.set(now, params, chance)
	d.changed = now
	d.counters.LatestMs = 0
	switch {
	case chance == nil && params.Opportunities != nil && before.Opportunities != nil && params.Trace == before.Trace:
		d.params.Opportunities, d.server = before.Opportunities, server
	case d.service != nil:
		d.serviceEnd = d.server.serve(d.server.ready(now), server.remaining(now, d.serviceEnd))
	default:
		d.beginAt = d.server.ready(now)
	}
	d.advance(now)
}

func (d *Direction) set(now int64, params Params, chance *Chance) {
	before := d.params
	d.params = params
	if chance != nil {
		d.chance = chance
	}
	d.delay, d.jitter = nanoseconds(params.DelayMs), params.JitterMs*1e6
	d.spread = distributionOf(params.JitterDistribution)
	d.server = newServer(&params, now)
	if queue := params.Queue; d.waiting == nil || !queue.sameDiscipline(before.Queue) {
		waiting := newDiscipline(queue, d.dropCodel, d.dropQueued)
		if d.waiting != nil {
			move(d.waiting, waiting)
		}
		d.waiting = waiting
	}
}

// dropCodel drops a queued frame for CoDel.
func (d *Direction) dropCodel(f *Frame) {
	d.counters.DroppedCodel++
	d.release(f)
}

// dropQueued drops a queued frame to make room for another.
func (d *Direction) dropQueued(f *Frame) {
	d.counters.DroppedQueue++
	d.release(f)
}

// NewFrame returns a frame with a copy of data: a virtio_net_hdr, then an Ethernet frame. It reuses the memory of a
// departed frame if possible.
func (d *Direction) NewFrame(data []byte, which Side) *Frame {
	f := d.pool.get(len(data))
	copy(f.Data, data)
	f.classify(d.prefixes, which)
	return f
}

// Arrive adds a frame that arrived at the time arrival, and reports whether it was kept. A frame that is not kept
// counts as dropped, and its memory is reused. Random loss, duplication and jitter do not affect frames that are not
// IP, such as ARP.
func (d *Direction) Arrive(arrival int64, f *Frame) bool {
	f.arrival = max(arrival, d.changed)
	d.advance(f.arrival)
	d.counters.PacketsIn++
	d.counters.BytesIn += uint64(f.Bytes)
	f.draw = neutralDraw
	if f.ip {
		f.draw = d.chance.next(&d.params)
		d.countLoss(f.draw.lost)
	}
	if f.draw.lost {
		d.pool.put(f)
		return false
	}
	if d.params.Middlebox == StripMultipath && f.stripMultipath() {
		d.counters.Stripped++
	}
	var double *Frame
	if f.draw.duplicate*100 < d.params.DuplicatePercent {
		d.counters.Duplicated++
		double = d.pool.get(len(f.Data))
		f.copyInto(double)
	}
	kept := d.admit(f)
	if double != nil {
		d.admit(double)
	}
	return kept
}

// countLoss counts the loss of an IP packet.
func (d *Direction) countLoss(lost bool) {
	if lost {
		d.counters.DroppedLoss++
		if !d.losing {
			d.counters.LossBursts++
		}
	}
	d.losing = lost
}

// admit puts a frame into the queue if there is room or the queue can make room; otherwise it drops the frame. A queue
// that exceeds a reduced limit does not grow, but drains normally.
func (d *Direction) admit(f *Frame) bool {
	if d.heldBytes+cap(f.Data) > maxHeldBytes {
		d.counters.DroppedMemory++
		d.pool.put(f)
		return false
	}
	full := d.over(f.Bytes, 1)
	shedder, sheds := d.waiting.(shedder)
	if full && !sheds {
		d.counters.DroppedQueue++
		d.pool.put(f)
		return false
	}
	d.heldBytes += cap(f.Data)
	if d.service == nil && d.waiting.packets() == 0 {
		d.beginAt = d.server.ready(f.arrival)
	}
	f.order = d.admitted
	d.admitted++
	bytes, packets := d.queueBytes(), d.queuePackets()
	d.waiting.push(f)
	for full && d.waiting.packets() > 0 && d.over(0, 0) && (d.queueBytes() > bytes || d.queuePackets() > packets) {
		shedder.shed()
	}
	d.advance(f.arrival)
	return true
}

// over reports whether the queue would exceed its limit with these additional bytes and packets. Without a rate no
// packet waits, and there is no limit.
func (d *Direction) over(bytes, packets int) bool {
	if !d.params.limited() {
		return false
	}
	limit := d.params.Queue
	return limit.Bytes > 0 && d.queueBytes()+bytes > limit.Bytes || limit.Packets > 0 && d.queuePackets()+packets > limit.Packets
}

// queueBytes returns the IP bytes of the packets that are not completely serialised.
func (d *Direction) queueBytes() int {
	if d.service == nil {
		return d.waiting.bytes()
	}
	return d.waiting.bytes() + d.service.Bytes
}

// queuePackets returns the number of packets that are not completely serialised.
func (d *Direction) queuePackets() int {
	if d.service == nil {
		return d.waiting.packets()
	}
	return d.waiting.packets() + 1
}

// advance runs the server up to the time now: it moves serialised packets to the delay line.
func (d *Direction) advance(now int64) {
	for {
		if d.service == nil {
			if d.waiting.packets() == 0 || d.beginAt > now {
				return
			}
			if d.service = d.waiting.pop(d.beginAt); d.service == nil {
				return
			}
			d.serviceEnd = d.server.serve(d.beginAt, d.server.cost(d.service.Bytes))
		}
		if d.serviceEnd > now {
			return
		}
		d.line.push(d.releaseOf(d.service, d.serviceEnd), d.service)
		d.service = nil
		if d.waiting.packets() > 0 {
			d.beginAt = d.server.ready(d.serviceEnd)
		}
	}
}

// releaseOf returns the departure time of a frame that is serialised at end. It is never before that of an earlier
// frame of its class, except for reordered frames, which skip the delay.
func (d *Direction) releaseOf(f *Frame, end int64) int64 {
	latest := &d.released[f.class]
	if f.draw.reorder*100 < d.params.ReorderPercent {
		release := end + d.prefixes.delay[f.class]
		if release < *latest {
			d.counters.Reordered++
		}
		*latest = max(*latest, release)
		return release
	}
	way := max(d.delay+int64(math.Round(d.spread.quantile(f.draw.jitter)*d.jitter)), 0) + d.prefixes.delay[f.class]
	*latest = max(end+way, *latest)
	return *latest
}

// Due returns the next frame that departs by the time now, or nil. The caller sends the frame and calls Sent or
// SendFailed.
func (d *Direction) Due(now int64) *Frame {
	d.advance(now)
	if d.line.len() == 0 || d.line.next() > now {
		return nil
	}
	if late := now - d.line.next(); late > lateAfter {
		d.counters.LatePackets++
		d.counters.LateMicros += uint64(late / 1e3)
		d.counters.LatestMs = max(d.counters.LatestMs, float64(late)/1e6)
	}
	return d.line.pop()
}

// Next returns a time before which no frame departs, or false if there is no frame.
func (d *Direction) Next() (int64, bool) {
	next := int64(math.MaxInt64)
	if d.line.len() > 0 {
		next = d.line.next()
	}
	if d.service != nil {
		next = min(next, d.serviceEnd+d.ShortestWay())
	} else if d.waiting.packets() > 0 {
		next = min(next, d.beginAt+d.ShortestWay())
	}
	return next, next != math.MaxInt64
}

// ShortestWay returns the minimum time between the end of serialisation and the departure, in ns.
func (d *Direction) ShortestWay() int64 {
	if d.params.ReorderPercent > 0 {
		return 0
	}
	return max(d.delay+int64(math.Floor(d.spread.least*d.jitter)), 0)
}

// Sent releases a frame from Due that was sent.
func (d *Direction) Sent(f *Frame) {
	d.counters.PacketsOut++
	d.counters.BytesOut += uint64(f.Bytes)
	d.release(f)
}

// SendFailed releases a frame from Due that the kernel refused.
func (d *Direction) SendFailed(f *Frame) {
	d.counters.DroppedSend++
	d.release(f)
}

func (d *Direction) release(f *Frame) {
	d.heldBytes -= cap(f.Data)
	d.pool.put(f)
}

// CountersAt returns the counters at the time now.
func (d *Direction) CountersAt(now int64) Counters {
	d.advance(now)
	c := d.counters
	c.QueueBytes, c.QueuePackets, c.DelayedPackets = d.queueBytes(), d.queuePackets(), d.line.len()
	return c
}
