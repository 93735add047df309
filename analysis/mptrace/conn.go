package mptrace

import (
	"slices"

	"mplab/analysis/mptrace/packet"
)

// conn is a TCP or MPTCP connection.
type conn struct {
	id          int32
	flows       []*flow
	start, last int64

	mptcp   bool
	version int32 // −1: not known, or plain TCP
	orphan  bool  // made from joins alone: its first subflow was not seen

	key      [2]uint64
	hasKey   [2]bool
	token    [2]uint32 // by which the other side addresses this one
	hasToken [2]bool
	idsn     [2]uint64

	capableSYN, capableSYNACK bool
	refused                   bool // SYN/ACK without MP_CAPABLE
	fallback                  bool // MP_FAIL or infinite mapping
	fastclose                 bool
	dataFIN                   [2]bool
	data                      [2]connData
}

func (c *conn) addFlow(f *flow) {
	if len(c.flows) == 1 { // a lone subflow has the set of its connection
		for dir := range c.data {
			c.flows[0].half[dir].data.own = c.data[dir].seen.Clone()
		}
	}
	f.conn, f.id = c, int32(len(c.flows))
	c.flows = append(c.flows, f)
}

// signal takes the MPTCP options of a segment.
func (e *Engine) signal(f *flow, p *packet.Packet, dir int) {
	c, o := f.conn, &p.Options
	if !c.mptcp && !c.upgrade(f, o) {
		return
	}
	if o.Has&packet.HasCapable != 0 {
		e.capable(f, p, dir)
	}
	if o.Has&packet.HasJoin != 0 {
		e.joinSignal(f, p, dir)
	}
	if o.Has&packet.HasDSS != 0 {
		e.dss(f, p, dir)
	}
	if o.Has&packet.HasPrio != 0 && o.Backup {
		f.backup = true
	}
	if o.Has&packet.HasFail != 0 && p.Flags&packet.RST == 0 {
		c.fallback = true
	}
	if o.Has&packet.HasFastclose != 0 {
		c.fastclose = true
	}
}

// upgrade makes a connection MPTCP whose SYN was not seen (or was cut) once
// its segments carry what plain TCP never has.
func (c *conn) upgrade(f *flow, o *packet.Options) bool {
	if f.syns > 0 && !f.synCut {
		return false
	}
	if o.Has&(packet.HasCapable|packet.HasDSS|packet.HasJoin) == 0 {
		return false
	}
	if o.Has&packet.HasCapable == 0 && c.version < 0 {
		c.orphan = true
	}
	if o.Has&packet.HasJoin != 0 {
		f.additional = true
	}
	c.mptcp = true
	for dir := range f.half { // what came before has no mapping
		h := &f.half[dir]
		for _, s := range h.seen.Spans() {
			h.data.unmapped.Add(s.Lo, s.Hi)
		}
	}
	return true
}

// capable takes MP_CAPABLE: version, keys, and the mapping of first data.
func (e *Engine) capable(f *flow, p *packet.Packet, dir int) {
	c, o := f.conn, &p.Options.Capable
	if f.additional {
		return
	}
	synAck := p.Flags&packet.SYN != 0 && p.Flags&packet.ACK != 0
	if c.version < 0 || synAck {
		c.version = int32(o.Version)
	}
	switch {
	case synAck:
		c.capableSYNACK = true
	case p.Flags&packet.SYN != 0:
		c.capableSYN = true
	}
	if o.Keys > 0 {
		e.learn(c, dir, o.SenderKey)
	}
	if o.Keys > 1 {
		e.learn(c, 1-dir, o.ReceiverKey)
	}
	h := &f.half[dir]
	if o.HasDataLen && o.DataLen > 0 && h.hasISN {
		h.data.signals++
		e.addMapping(f, dir, h.unwrap(h.isn+1), c.idsn[dir]+1, uint64(o.DataLen))
	}
}

// learn stores a key and what follows from it: token and initial DSN.
func (e *Engine) learn(c *conn, side int, key uint64) {
	if c.hasKey[side] {
		if c.key[side] != key {
			e.warnings.KeyChanged++
		}
		return
	}
	c.key[side], c.hasKey[side] = key, true
	c.token[side], c.idsn[side] = tokenAndIDSN(c.version, key)
	c.hasToken[side] = true
	e.tokens[c.token[side]] = tokenOwner{c, side}
}

// fellBack says whether the connection went on as plain TCP (RFC 8684 §3.7):
// the server did not take MP_CAPABLE, one side declared it, or the first data
// or its acknowledgement came without DSS.
func (c *conn) fellBack() bool {
	if !c.mptcp {
		return false
	}
	if c.fallback || (c.refused && !c.capableSYNACK) {
		return true
	}
	if c.orphan || len(c.flows) != 1 {
		return false
	}
	f := c.flows[0]
	up, down := &f.half[client], &f.half[server]
	if !f.established() || up.payload+down.payload == 0 {
		return false
	}
	return (down.whole > 0 && down.data.signals == 0) || (up.payload > 0 && up.whole > 0 && up.data.signals == 0)
}

// bytes is the unique payload of a direction.
func (c *conn) bytes(dir int) int64 {
	if !c.mptcp {
		return int64(c.flows[0].half[dir].seen.Bytes())
	}
	sum := c.data[dir].seen.Bytes()
	if c.fellBack() {
		for _, f := range c.flows {
			sum += f.half[dir].data.unmapped.Bytes()
		}
	}
	return int64(sum)
}

// subflowEstablished says whether a subflow could carry data of the
// connection. For a join: SYN, SYN/ACK and an ACK with a sound HMAC, or DSS.
func (c *conn) subflowEstablished(f *flow) bool {
	if !c.mptcp || !f.additional {
		return f.established()
	}
	return f.join.complete() || f.half[client].data.signals+f.half[server].data.signals > 0
}

// closed says how the connection ended. Data-level ends count above those of
// subflows, RFC 8684 §3.3.3 and §3.5.
func (c *conn) closed() string {
	switch {
	case !c.mptcp:
		return c.flows[0].closed()
	case c.fastclose:
		return "fastclose"
	case c.dataFIN[client] && c.dataFIN[server]:
		return "fin"
	}
	var ends []string
	for _, f := range c.flows {
		if c.subflowEstablished(f) || len(c.flows) == 1 {
			ends = append(ends, f.closed())
		}
	}
	switch {
	case len(ends) == 0 || slices.Contains(ends, "open"):
		return "open"
	case slices.Contains(ends, "fin"):
		return "fin"
	}
	return "rst"
}
