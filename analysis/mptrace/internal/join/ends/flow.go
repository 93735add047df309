package ends

import (
	"mplab/analysis/mptrace/packet"
)

// Directions. The phone sends Up, whichever end opened the connection.
const (
	Up   = 0
	Down = 1
)

// Ends. Each end sends the direction with its number.
const (
	phoneEnd = Up
	proxyEnd = Down
)

// flow is one incarnation of a 4-tuple, at both ends.
type flow struct {
	key    key // direction up, with the phone's addresses
	isn    uint32
	opener uint8 // direction of the SYN; valid if syn is set
	seen   [2]bool
	syn    bool
	nat    bool
	iface  int32 // at the phone; −1: not yet seen there
	lastNS int64
	dirs   [2]direction
	rules  *[2]rules   // of its path; nil: unknown
	sub    *subflow    // the subflow in the phone's engine; nil: none
	conn   *connection // its connection; nil: unknown
}

// way is one direction of a flow.
type way struct {
	flow *flow
	dir  uint8
}

// named is a direction with its key at one end.
type named struct {
	key key
	way way
}

// flows finds the flow of a packet at either end.
type flows struct {
	known   *acquaintance
	ends    [2]map[key]way
	last    [2][2]named   // the last two directions at each end, as a cache
	shared  map[key]*flow // the latest incarnation of each 4-tuple
	all     []*flow
	most    int
	ignored int64
}

func newFlows(known *acquaintance, most int) *flows {
	return &flows{known: known, ends: [2]map[key]way{{}, {}}, shared: map[key]*flow{}, most: most}
}

// find returns the flow of a packet captured at an end, or nil if the packet is
// not between the two ends. now is the packet's time by the phone's clock.
func (t *flows) find(end int, p *packet.Packet, now int64) (*flow, uint8) {
	k := keyOf(p)
	w := t.recent(end, k)
	if w.flow == nil || p.Flags&(packet.SYN|packet.ACK) == packet.SYN && t.reborn(w, p) {
		if w = t.begin(end, k, p); w.flow == nil {
			t.ignored++
			return nil, 0
		}
	}
	f := w.flow
	if p.Flags&packet.SYN != 0 && !f.syn {
		f.syn, f.isn, f.opener = true, p.Seq, w.dir
		if p.Flags&packet.ACK != 0 {
			f.isn, f.opener = p.Ack-1, 1-w.dir
		}
	}
	if end == phoneEnd && f.iface < 0 {
		f.iface = p.Iface
	}
	f.seen[end] = true
	f.lastNS = max(f.lastNS, now)
	return f, w.dir
}

func (t *flows) recent(end int, k key) way {
	last := &t.last[end]
	if last[0].key == k {
		return last[0].way
	}
	last[0], last[1] = last[1], last[0]
	if last[0].key == k {
		return last[0].way
	}
	w, ok := t.ends[end][k]
	if ok {
		last[0].key, last[0].way = k, w
	}
	return w
}

// reborn reports whether a SYN starts another incarnation of its 4-tuple.
func (t *flows) reborn(w way, p *packet.Packet) bool {
	return !w.flow.syn || w.flow.isn != p.Seq || w.flow.opener != w.dir
}

// begin registers the first packet of a flow at an end. The other end may
// already know the flow.
func (t *flows) begin(end int, k key, p *packet.Packet) way {
	name := k
	if end == proxyEnd {
		if other, ok := t.known.nat[k]; ok {
			name = other
		}
	}
	up, ok := t.orient(end, name, p)
	if !ok {
		return way{}
	}
	dir := uint8(Up)
	if !up {
		dir, name = Down, name.back()
	}
	f := t.shared[name]
	if f != nil && f.seen[end] && p.Flags&(packet.SYN|packet.ACK) == packet.SYN || f != nil && t.other(f, dir, p) {
		f = nil
	}
	if f == nil {
		if len(t.all) >= t.most {
			return way{}
		}
		f = &flow{key: name, iface: -1}
		for i := range f.dirs {
			f.dirs[i].flow, f.dirs[i].dir = f, uint8(i)
		}
		t.shared[name] = f
		t.all = append(t.all, f)
	}
	f.nat = f.nat || (end == proxyEnd && k != name && k != name.back())
	back := k.back()
	t.ends[end][k], t.ends[end][back] = way{f, dir}, way{f, 1 - dir}
	t.last[end] = [2]named{{k, way{f, dir}}, {back, way{f, 1 - dir}}}
	return way{f, dir}
}

// other reports whether a packet with SYN belongs to another incarnation than
// f.
func (t *flows) other(f *flow, dir uint8, p *packet.Packet) bool {
	switch {
	case p.Flags&packet.SYN == 0 || !f.syn:
		return false
	case p.Flags&packet.ACK == 0:
		return p.Seq != f.isn || dir != f.opener
	}
	return p.Ack-1 != f.isn
}

// orient reports whether the phone sent a packet; ok is false if the packet is
// not between the phone and the proxy.
func (t *flows) orient(end int, k key, p *packet.Packet) (up, ok bool) {
	phone, proxy := t.known.phoneAddrs, t.known.proxyAddrs
	forth, back := phone[k.src] && proxy[k.dst], phone[k.dst] && proxy[k.src]
	switch {
	case forth != back:
		return forth, true
	case forth && p.Flags&(packet.SYN|packet.ACK) == packet.SYN:
		return true, true
	case forth && p.Flags&packet.SYN != 0:
		return false, true
	case forth:
		return k.srcPort > k.dstPort, true
	case end == phoneEnd && proxy[k.dst]: // from an interface whose packets never arrived
		return true, true
	case end == phoneEnd && proxy[k.src]:
		return false, true
	}
	return false, false
}

// sweep ends the flows without packets since a time.
func (t *flows) sweep(before int64, end func(*flow)) {
	keep := t.all[:0]
	for _, f := range t.all {
		if f.lastNS >= before {
			keep = append(keep, f)
			continue
		}
		end(f)
		if t.shared[f.key] == f {
			delete(t.shared, f.key)
		}
		f.lastNS = -1
	}
	clear(t.all[len(keep):])
	t.all = keep
	for e := range t.ends {
		t.last[e] = [2]named{}
		for k, w := range t.ends[e] {
			if w.flow.lastNS < 0 {
				delete(t.ends[e], k)
			}
		}
	}
}
