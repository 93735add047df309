package tcp

import (
	"slices"
	"sync"

	"mplab/analysis/mptrace/packet"
)

// Options of a [Tracker]. Zero values select the defaults.
type Options struct {
	Samples          int                   // RTT samples kept per direction, see hist.Series; default 1000, −1: all
	MaxFlows         int                   // limit of live flows; beyond it some end early; default 1<<16
	IdleNS           int64                 // idle time after which a flow has ended; default 1 hour
	ClosedNS         int64                 // idle time after which a closed flow is forgotten; default 5 s
	OnEnd            func(*Flow)           // called when a flow has ended; the tracker then forgets it
	OnRetransmission func(*Retransmission) // called before the flow's end; the argument is valid during the call
}

const (
	defaultMaxFlows = 1 << 16
	defaultIdleNS   = 3600e9
	defaultClosedNS = 5e9
	// unsettledNS is how long a closed flow is kept if packets may be
	// retransmitted: Linux waits up to 120 s between two retransmissions.
	unsettledNS = 130e9
	// maxPairs is the maximum number of pairs of streams that wait for reuse.
	maxPairs = 512
	// lateNS is how long after that its packets are recognised as late.
	lateNS = 120e9
)

// Tracker follows the flows of a sequence of packets. It is not safe for
// concurrent use.
type Tracker struct {
	// Evicted counts the flows that were ended early to bound memory. It
	// excludes closed flows, of which nothing is missed.
	Evicted int64

	o      Options
	last   *Flow // flow of the previous packet
	table  table
	queues [queues]queue

	releasing sync.Mutex
	pairs     []*[2]stream // for reuse

	tombstones tombstones

	nowNS   int64 // time of the previous packet
	sweepNS int64 // time of the next sweep
	jumpNS  int64 // time after the last clock jump; idle times start here
	serial  uint64

	blocks [8]packet.SACKBlock // scratch
	routes [routes]route       // of Fast
}

// NewTracker returns a tracker.
func NewTracker(o Options) *Tracker {
	if o.MaxFlows <= 0 {
		o.MaxFlows = defaultMaxFlows
	}
	if o.IdleNS <= 0 {
		o.IdleNS = defaultIdleNS
	}
	if o.ClosedNS <= 0 {
		o.ClosedNS = defaultClosedNS
	}
	return &Tracker{o: o, table: newTable()}
}

// Add processes the next packet and describes it in seg, which then points to
// p. Packets must be in the order of time; small disorder is harmless.
func (t *Tracker) Add(p *packet.Packet, seg *Segment) {
	now := p.TimeNS
	if now >= t.sweepNS || now < t.nowNS-t.o.IdleNS {
		t.timePasses(now)
	}
	t.nowNS = now
	f := t.last
	dir, ok := uint8(Up), false
	if f != nil {
		dir, ok = f.direction(p)
	}
	if !ok {
		var hash uint64
		if f, dir, hash = t.table.find(p); f == nil && t.tombstones.has(hash) {
			if p.Flags&(packet.SYN|packet.ACK) != packet.SYN {
				seg.reset(p, nil, Up, false)
				seg.Late = true
				return
			}
			t.tombstones.remove(hash)
		}
	}
	first := false
	if f == nil || (now-f.LastNS > t.o.IdleNS && !f.continues(p, dir)) || (p.Flags&packet.SYN != 0 && f.reusedBy(p, dir)) {
		if f != nil {
			t.end(f)
		}
		f = t.begin(p)
		dir, _ = f.direction(p)
		first = true
	}
	if f != t.last {
		t.last = f
	}
	seg.reset(p, f, dir, first)
	if f.streams != nil && p.Flags&(packet.SYN|packet.RST) == 0 {
		t.plain(f, p, seg)
	} else {
		t.special(f, p, seg)
	}
	if !f.opened {
		f.opened = f.Established()
	}
	seg.Established = f.opened
	if f.queue == active {
		t.remember(p, f, dir)
	}
}

// reset sets *seg to a new segment. It writes pointers only if they change,
// because each pointer write costs time while the garbage collector runs.
func (seg *Segment) reset(p *packet.Packet, f *Flow, dir uint8, first bool) {
	if seg.Packet != p {
		seg.Packet = p
	}
	if seg.Flow != f {
		seg.Flow = f
	}
	if seg.Gaps != nil {
		seg.Gaps = nil
	}
	seg.Dir, seg.First, seg.Duplicate, seg.Late, seg.Fresh = dir, first, false, false, None
	seg.Hole, seg.Reordered, seg.Cause = false, false, NotRetransmitted
	seg.Ignored, seg.Resumed = false, false
	seg.Lo, seg.Hi, seg.Ack, seg.Floor, seg.Acked, seg.Window = 0, 0, 0, 0, 0, 0
}

// begin creates the flow of a packet.
func (t *Tracker) begin(p *packet.Packet) *Flow {
	t.makeRoom()
	f := &Flow{Iface: p.Iface, StartNS: p.TimeNS, LastNS: p.TimeNS, serial: t.serial}
	t.serial++
	src, dst := Endpoint{p.Src, p.SrcPort}, Endpoint{p.Dst, p.DstPort}
	switch {
	case p.Flags&(packet.SYN|packet.ACK) == packet.SYN|packet.ACK:
		f.Ends = [2]Endpoint{dst, src}
	case p.Flags&packet.SYN != 0 || dst.Port <= src.Port:
		f.Ends = [2]Endpoint{src, dst}
	default: // without a handshake: servers have the lower port
		f.Ends = [2]Endpoint{dst, src}
	}
	t.table.insert(f)
	t.enqueue(f, opening, p.TimeNS)
	return f
}

// end reports the end of a flow and forgets it.
func (t *Tracker) end(f *Flow) {
	t.queues[f.queue].Remove(f)
	t.table.remove(f)
	t.unroute(f)
	if t.last == f {
		t.last = nil
	}
	for dir := range f.half {
		t.tellAll(f, uint8(dir))
	}
	if t.o.OnEnd != nil {
		t.o.OnEnd(f)
	}
	if f.streams != nil {
		for dir := range f.streams {
			f.streams[dir].sent.trim() // the owner may keep the flow for a long time
		}
	}
}

// Release keeps the memory of a flow that has ended for later flows. Only Ends, times and
// the methods of [Flow] that need no payload may be used then. Unlike the other
// methods it may be called concurrently.
func (t *Tracker) Release(f *Flow) {
	t.releasing.Lock()
	defer t.releasing.Unlock()
	if f.streams != nil && len(t.pairs) < maxPairs {
		t.pairs = append(t.pairs, f.streams)
	}
	f.streams = nil
}

// Close ends all flows, in the order of their starts.
func (t *Tracker) Close() {
	var all []*Flow
	for i := range queues {
		for f := t.queues[i].Front(); f != nil; f = t.queues[i].Next(f) {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b *Flow) int {
		if a.serial < b.serial {
			return -1
		}
		return 1
	})
	for _, f := range all {
		t.end(f)
	}
}
