package mptrace

import (
	"mplab/analysis/mptrace/interval"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// Engine follows the connections of a sequence of packets. It is not safe for
// concurrent use.
type Engine struct {
	flows    map[flowKey]*flow
	conns    []*conn
	tokens   map[uint32]tokenOwner
	orphans  map[uint32]*conn // joins whose connection was not seen
	warnings tables.Warnings
	gaps     []interval.Span // scratch

	lastKey  flowKey
	lastFlow *flow
}

// tokenOwner is the side of a connection that a token stands for.
type tokenOwner struct {
	conn *conn
	side int
}

// NewEngine returns an engine that has seen nothing.
func NewEngine() *Engine {
	return &Engine{flows: map[flowKey]*flow{}, tokens: map[uint32]tokenOwner{}, orphans: map[uint32]*conn{}}
}

// endpoint is one end of a TCP connection.
type endpoint struct {
	addr packet.Addr
	port uint16
}

// flowKey is a 4-tuple, the same for both directions.
type flowKey struct{ a, b endpoint }

func less(a, b endpoint) bool {
	for i := range a.addr {
		if a.addr[i] != b.addr[i] {
			return a.addr[i] < b.addr[i]
		}
	}
	return a.port < b.port
}

// Add takes the next packet. Packets come in the order of their time; small
// disorder, as between the interfaces of a capture, does no harm.
func (e *Engine) Add(p *packet.Packet) {
	if p.FirstFragment {
		e.warnings.SegmentsFragmented++
	}
	if p.OptionsCut {
		e.warnings.OptionsCut++
	}
	if p.Options.Has&packet.HasBad != 0 {
		e.warnings.OptionsMalformed++
	}
	src, dst := endpoint{p.Src, p.SrcPort}, endpoint{p.Dst, p.DstPort}
	key := flowKey{src, dst}
	if less(dst, src) {
		key = flowKey{dst, src}
	}
	f := e.lastFlow
	if f == nil || key != e.lastKey {
		f = e.flows[key]
	}
	if f == nil || f.reusedBy(p, f.direction(src)) {
		f = e.open(p, src, dst)
		e.flows[key] = f
	}
	e.lastKey, e.lastFlow = key, f
	dir := f.direction(src)
	f.conn.last = max(f.conn.last, p.TimeNS)
	f.add(p, dir)
	if p.Options.Has != 0 {
		e.signal(f, p, dir)
	}
	e.payload(f, p, dir)
}

// open makes the flow of a 4-tuple and finds or makes its connection.
func (e *Engine) open(p *packet.Packet, src, dst endpoint) *flow {
	f := &flow{start: p.TimeNS, last: p.TimeNS, iface: p.Iface}
	switch {
	case p.Flags&packet.SYN != 0 && p.Flags&packet.ACK != 0:
		f.ends = [2]endpoint{dst, src}
	case p.Flags&packet.SYN != 0 || dst.port <= src.port:
		f.ends = [2]endpoint{src, dst}
	default: // the handshake was not seen: servers have the lower port
		f.ends = [2]endpoint{dst, src}
	}
	if isJoinSYN(p) {
		e.join(f, p)
		return f
	}
	c := e.newConn(f, p)
	if p.Flags&(packet.SYN|packet.ACK) == packet.SYN && p.Options.Has&packet.HasCapable != 0 {
		c.mptcp, c.capableSYN, c.version = true, true, int32(p.Options.Capable.Version)
	}
	return f
}

func isJoinSYN(p *packet.Packet) bool {
	return p.Flags&(packet.SYN|packet.ACK) == packet.SYN &&
		p.Options.Has&packet.HasJoin != 0 && p.Options.Join.Form == packet.JoinSYN
}

func (e *Engine) newConn(f *flow, p *packet.Packet) *conn {
	c := &conn{id: int32(len(e.conns)), start: p.TimeNS, last: p.TimeNS, version: -1}
	e.conns = append(e.conns, c)
	c.addFlow(f)
	return c
}

// join adds the flow of an MP_JOIN SYN to the connection of its token. The
// token is the receiver's, so it tells which side opened the flow.
func (e *Engine) join(f *flow, p *packet.Packet) {
	token := p.Options.Join.Token
	f.additional = true
	if owner, ok := e.tokens[token]; ok {
		if owner.side == client { // the server opened it
			f.ends[client], f.ends[server] = f.ends[server], f.ends[client]
			f.opener = server
		}
		owner.conn.addFlow(f)
		return
	}
	e.warnings.JoinUnknownToken++
	if c := e.orphans[token]; c != nil {
		c.addFlow(f)
		return
	}
	c := e.newConn(f, p)
	c.mptcp, c.orphan = true, true
	c.token[server], c.hasToken[server] = token, true
	e.orphans[token] = c
}
