package filter

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"slices"

	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// Named reports whether the expression names connections by number or token.
func (f *Filter) Named() bool { return f.connection >= 0 || f.token != "" }

// Connection reports whether a connection has the number and the token of the
// expression.
func (f *Filter) Connection(row *tables.Connection) bool {
	return (f.connection < 0 || f.connection == row.ConnectionID) && (f.token == "" || f.token == row.Token || f.token == row.TokenClient)
}

// Gate decides which segments of an analysis are processed. It is not safe for
// concurrent use.
type Gate struct {
	filter  *Filter
	flows   *Flows
	started bool
	startNS int64 // time of the first segment
}

// Gate returns the gate of one analysis: for segments of some flows, or of all
// if flows is nil.
func (f *Filter) Gate(flows *Flows) *Gate { return &Gate{filter: f, flows: flows} }

// Pass reports whether a segment is processed. It must be called for each
// segment of the captures, in their order.
func (g *Gate) Pass(p *packet.Packet) bool {
	if !g.started {
		g.started, g.startNS = true, p.TimeNS
	}
	f := g.filter
	for _, t := range f.times {
		if p.TimeNS < t.from.since(g.startNS) || p.TimeNS > t.to.since(g.startNS) {
			return false
		}
	}
	for _, port := range f.ports {
		if port != p.SrcPort && port != p.DstPort {
			return false
		}
	}
	for _, n := range f.networks {
		if !n.contains(p.Src) && !n.contains(p.Dst) {
			return false
		}
	}
	if g.flows == nil {
		return true
	}
	_, ok := g.flows.find(p)
	return ok
}

func (i instant) since(startNS int64) int64 {
	if i.relative {
		return startNS + i.ns
	}
	return i.ns
}

func (n network) contains(a packet.Addr) bool {
	return and(a, n.mask) == n.address && (a.Hi == 0 && a.Lo>>32 == 0xffff) == n.four
}

func and(a, b packet.Addr) packet.Addr { return packet.Addr{Hi: a.Hi & b.Hi, Lo: a.Lo & b.Lo} }

// ones returns a number whose upper n bits are set.
func ones(n int) uint64 { return bits.Reverse64(1<<n - 1) }

func addressOf(a netip.Addr) packet.Addr {
	b := a.As16()
	return packet.Addr{Hi: binary.BigEndian.Uint64(b[:8]), Lo: binary.BigEndian.Uint64(b[8:])}
}

// maxFlows bounds the flows of named connections.
const maxFlows = 100_000

// disorderNS is how far a segment can be outside of the first and last time of
// its flow: captures of several queues are not strictly in the order of time.
const disorderNS = 1e6

// Flows is a set of flows with the numbers of their connections. The zero value
// is empty.
type Flows struct {
	stays map[tuple][]stay
	count int
}

// tuple has the lower end first.
type tuple [2]end

type end struct {
	packet.Addr
	port uint16
}

// stay is the time from the first to the last segment of a flow.
type stay struct {
	fromNS, toNS int64
	connection   int32
}

// Add adds a flow. It returns false if there are too many.
func (s *Flows) Add(row *tables.Subflow) bool {
	client, err := netip.ParseAddr(row.Client)
	server, err2 := netip.ParseAddr(row.Server)
	if err != nil || err2 != nil || s.count == maxFlows {
		return false
	}
	if s.stays == nil {
		s.stays = map[tuple][]stay{}
	}
	t := tupleOf(end{addressOf(client), uint16(row.ClientPort)}, end{addressOf(server), uint16(row.ServerPort)})
	toNS := row.StartNS + int64(row.DurationS*1e9+0.5)
	s.stays[t] = append(s.stays[t], stay{row.StartNS - disorderNS, toNS + disorderNS, row.ConnectionID})
	s.count++
	return true
}

// Number returns the number of the connection to which a segment belongs.
func (s *Flows) Number(p *packet.Packet) int32 {
	found, _ := s.find(p)
	return found.connection
}

func (s *Flows) find(p *packet.Packet) (stay, bool) {
	all := s.stays[tupleOf(end{p.Src, p.SrcPort}, end{p.Dst, p.DstPort})]
	at := slices.IndexFunc(all, func(s stay) bool { return s.fromNS <= p.TimeNS && p.TimeNS <= s.toNS })
	if at < 0 {
		return stay{}, false
	}
	return all[at], true
}

func tupleOf(a, b end) tuple {
	if a.Hi > b.Hi || a.Hi == b.Hi && (a.Lo > b.Lo || a.Lo == b.Lo && a.port > b.port) {
		a, b = b, a
	}
	return tuple{a, b}
}
