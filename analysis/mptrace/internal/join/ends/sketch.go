package ends

import (
	"cmp"
	"math/bits"
	"slices"

	"mplab/analysis/mptrace/packet"
)

// A sketch keeps the packets of one end with the lowest signatures (a bottom-k
// sample). The signature of a packet is the same at both ends, so both ends
// keep the same packets, wherever they are in the captures. The sample suffices
// to find a rough clock and the flows that NAT renamed, in constant memory.
// SYNs have a separate sketch because each one identifies a flow.

const (
	sketchPackets = 1 << 15
	sketchSYNs    = 1 << 14
)

// key is the source and destination of a packet.
type key struct {
	src, dst         packet.Addr
	srcPort, dstPort uint16
}

func keyOf(p *packet.Packet) key { return key{p.Src, p.Dst, p.SrcPort, p.DstPort} }

func (k key) back() key { return key{k.dst, k.src, k.dstPort, k.srcPort} }

// seen is a packet in a sketch.
type seen struct {
	signature uint64
	timeNS    int64
	key       key
	iface     int32
	id        uint16
	whole     bool // IPv4 with an identification
}

type sample struct {
	size  int
	limit uint64 // packets with higher signatures are dropped
	seen  []seen
}

func (s *sample) add(p *packet.Packet, signature uint64) {
	if signature > s.limit {
		return
	}
	s.seen = append(s.seen, seen{signature, p.TimeNS, keyOf(p), p.Iface, p.IPID, p.Quirks&packet.IPv6 == 0 && p.IPID != 0})
	if len(s.seen) >= 2*s.size {
		s.cut()
	}
}

// cut keeps the lowest signatures. Packets with equal signatures are kept or
// dropped together.
func (s *sample) cut() {
	slices.SortFunc(s.seen, func(a, b seen) int {
		return cmp.Or(cmp.Compare(a.signature, b.signature), cmp.Compare(a.timeNS, b.timeNS))
	})
	if len(s.seen) > s.size {
		s.limit = s.seen[s.size].signature - 1
		n := s.size
		for n > 0 && s.seen[n-1].signature > s.limit {
			n--
		}
		s.seen = s.seen[:n]
	}
}

// sketch is the result of the first pass over one end.
type sketch struct {
	packets, syns sample
	openers       map[packet.Addr]bool // sent a SYN without MP_JOIN
	opened        map[packet.Addr]bool // received such a SYN
	first, last   int64
	count         int64
}

// mostOpeners bounds the address sets of a sketch.
const mostOpeners = 1 << 12

func newSketch() *sketch {
	return &sketch{
		packets: sample{size: sketchPackets, limit: ^uint64(0)}, syns: sample{size: sketchSYNs, limit: ^uint64(0)},
		openers: map[packet.Addr]bool{}, opened: map[packet.Addr]bool{},
	}
}

func (s *sketch) read(in stream) {
	for p := in.next(); p != nil; p = in.next() {
		if s.count == 0 {
			s.first, s.last = p.TimeNS, p.TimeNS
		}
		s.count++
		s.first, s.last = min(s.first, p.TimeNS), max(s.last, p.TimeNS)
		signature := signature(p)
		if p.Flags&(packet.SYN|packet.ACK) == packet.SYN {
			s.syns.add(p, signature)
			if p.Has&packet.HasJoin == 0 && len(s.openers) < mostOpeners {
				s.openers[p.Src], s.opened[p.Dst] = true, true
			}
			continue
		}
		s.packets.add(p, signature)
	}
	s.packets.cut()
	s.syns.cut()
}

// signature returns a hash that is equal for the same packet at both ends,
// independent of addresses and ports, which NAT may change. Different packets
// can collide.
func signature(p *packet.Packet) uint64 {
	h := mix(uint64(p.Seq)<<32|uint64(p.Ack), uint64(p.Payload)<<8|uint64(p.Flags))
	if p.Has&packet.HasTimestamps != 0 {
		h = mix(h, uint64(p.TSVal)<<32|uint64(p.TSEcr))
	}
	if p.Has&packet.HasDSS != 0 {
		h = mix(h, p.DataAck+p.DSN)
	}
	return h
}

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9e3779b97f4a7c15, b^0xd1b54a32d192ed03)
	hi, lo = bits.Mul64(hi^lo^a, 0xbf58476d1ce4e5b9)
	return hi ^ lo
}

// acquaintance is the result of comparing the two sketches.
type acquaintance struct {
	phoneAddrs, proxyAddrs map[packet.Addr]bool // as the phone sees them
	nat                    map[key]key          // keys at the proxy → keys at the phone
	ids                    map[int32]*[2]idCount
	coarse                 line
	clock                  Clock
	matched                int
	swapped                bool // packets pass the far end before the near one
}

// idCount counts how often the network preserved the IP identification of a
// packet.
type idCount struct{ same, other int }

func (c *idCount) kept() bool { return c != nil && c.same > 9*c.other }

// both is a packet in both sketches.
type both struct{ phone, proxy *seen }

// meet compares the sketches of phone and proxy.
func meet(phone, proxy *sketch, name func(int32) string) *acquaintance {
	a := &acquaintance{
		phoneAddrs: map[packet.Addr]bool{}, proxyAddrs: map[packet.Addr]bool{},
		nat: map[key]key{}, ids: map[int32]*[2]idCount{},
	}
	pairs := slices.Concat(common(phone.syns.seen, proxy.syns.seen), common(phone.packets.seen, proxy.packets.seen))
	slices.SortFunc(pairs, func(x, y both) int { return cmp.Compare(x.phone.timeNS, y.phone.timeNS) })
	a.matched = len(pairs)
	ups := directions(pairs, phone.openers, phone.opened)
	e := a.envelope(phone, pairs, ups)
	if len(phone.openers) == 0 && e.impossible() { // the guess by port numbers was wrong
		for i := range ups {
			ups[i] = !ups[i]
		}
		e = a.envelope(phone, pairs, ups)
	}
	a.swapped = e.reversed()
	a.coarse, a.clock = e.estimate(name)
	for i, b := range pairs {
		a.note(b, ups[i])
	}
	return a
}

// common returns the packets whose signature occurs exactly once at each end.
func common(phone, proxy []seen) (pairs []both) {
	for i, j := 0, 0; i < len(phone) && j < len(proxy); {
		a, b := &phone[i], &proxy[j]
		i2, j2 := i+1, j+1
		for i2 < len(phone) && phone[i2].signature == a.signature {
			i2++
		}
		for j2 < len(proxy) && proxy[j2].signature == b.signature {
			j2++
		}
		switch {
		case a.signature < b.signature:
			i = i2
		case a.signature > b.signature:
			j = j2
		default:
			if i2 == i+1 && j2 == j+1 {
				pairs = append(pairs, both{a, b})
			}
			i, j = i2, j2
		}
	}
	return pairs
}

// directions reports for each packet whether the phone sent it.
func directions(pairs []both, openers, opened map[packet.Addr]bool) []bool {
	ups := make([]bool, len(pairs))
	for i, b := range pairs {
		ups[i] = fromPhone(b.phone.key, openers, opened)
	}
	return ups
}

// fromPhone guesses whether the phone sent a packet, from the addresses that
// opened connections and those that accepted them. Without such addresses, the
// end with the higher port is the phone.
func fromPhone(k key, phone, proxy map[packet.Addr]bool) bool {
	srcPhone, dstPhone := phone[k.src] && !proxy[k.src], phone[k.dst] && !proxy[k.dst]
	srcProxy, dstProxy := proxy[k.src] && !phone[k.src], proxy[k.dst] && !phone[k.dst]
	switch {
	case srcPhone || dstProxy:
		return true
	case dstPhone || srcProxy:
		return false
	}
	return k.srcPort > k.dstPort
}

func (a *acquaintance) envelope(phone *sketch, pairs []both, ups []bool) *envelope {
	rough := newEnvelope(line{start: phone.first}, float64(phone.last-phone.first))
	for i, b := range pairs {
		rough.take(b, ups[i])
	}
	coarse, _ := rough.estimate(func(int32) string { return "" })
	fine := newEnvelope(line{start: phone.first, slope: coarse.slope}, rough.width)
	for i, b := range pairs {
		fine.take(b, ups[i])
	}
	return fine
}

func (e *envelope) take(b both, up bool) {
	if up {
		e.add(b.phone.iface, Up, b.phone.timeNS, b.proxy.timeNS)
	} else {
		e.add(b.phone.iface, Down, b.proxy.timeNS, b.phone.timeNS)
	}
}

// impossible reports whether a path has a negative round trip.
func (e *envelope) impossible() bool {
	for _, c := range e.paths {
		if slope := e.line.slope; c[Up].n > 0 && c[Down].n > 0 && c[Up].hull.low(slope)+c[Down].hull.low(-slope) < 0 {
			return true
		}
	}
	return false
}

// reversed reports whether the round trips of all paths are negative, as when
// the two ends are swapped.
func (e *envelope) reversed() bool {
	some := false
	for _, c := range e.paths {
		if slope := e.line.slope; c[Up].n > 0 && c[Down].n > 0 {
			if c[Up].hull.low(slope)+c[Down].hull.low(-slope) >= 0 {
				return false
			}
			some = true
		}
	}
	return some
}

// note learns addresses and IP identifications from a packet that both ends
// have.
func (a *acquaintance) note(b both, up bool) {
	from, at, dir := b.phone.key, b.proxy.key, Down
	if up {
		dir = Up
		a.phoneAddrs[from.src], a.proxyAddrs[from.dst] = true, true
	} else {
		a.phoneAddrs[from.dst], a.proxyAddrs[from.src] = true, true
	}
	if from != at {
		a.nat[at], a.nat[at.back()] = from, from.back()
	}
	if !b.phone.whole && !b.proxy.whole {
		return
	}
	ids := a.ids[b.phone.iface]
	if ids == nil {
		ids = new([2]idCount)
		a.ids[b.phone.iface] = ids
	}
	if b.phone.id == b.proxy.id {
		ids[dir].same++
	} else {
		ids[dir].other++
	}
}
