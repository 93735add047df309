package mptrace

import (
	"mplab/analysis/mptrace/interval"
	"mplab/analysis/mptrace/packet"
)

// The two sides of a connection, and the direction of what they send.
const (
	client = 0 // sends up
	server = 1 // sends down
)

// flow is one TCP 4-tuple from its SYN on. Its client is the client of its
// connection, also when the server opened it.
type flow struct {
	conn       *conn
	id         int32
	ends       [2]endpoint
	opener     int // the side that sent the SYN
	additional bool
	iface      int32

	start, last               int64
	synNS, synAckNS, ackNS    int64
	syns, synAcks             int32
	synCut                    bool // the SYN's options were not captured whole
	reset                     bool
	firstPayload, lastPayload int64

	half [2]half
	join joinState
	// backup: a B bit was seen in MP_JOIN or MP_PRIO.
	backup bool
}

// half is one direction of a flow.
type half struct {
	isn     uint32
	hasISN  bool
	started bool
	// edge is the highest sequence number seen plus one, low the lowest. Both
	// are unwrapped to 64 bits; their low 32 bits are those on the wire.
	edge, low uint64
	firstAck  uint32
	hasAck    bool

	segments, payload          int64
	retransSegments, retransed int64
	plain                      int64 // segments with ACK, without SYN and RST
	whole                      int64 // of them, those with all their options captured
	seen                       interval.Set
	fin                        bool

	data subflowData
}

func (f *flow) direction(src endpoint) int {
	if src == f.ends[client] {
		return client
	}
	return server
}

// reusedBy says whether p belongs to a later connection of the same 4-tuple.
func (f *flow) reusedBy(p *packet.Packet, dir int) bool {
	if p.Flags&packet.SYN == 0 || p.Flags&packet.RST != 0 {
		return false
	}
	mine, peer := &f.half[dir], &f.half[1-dir]
	if p.Flags&packet.ACK == 0 {
		switch {
		case mine.hasISN:
			return p.Seq != mine.isn
		case mine.started: // the SYN comes late, or starts anew
			return p.Seq+1 != uint32(mine.low)
		case peer.hasAck:
			return p.Seq+1 != peer.firstAck
		}
		return false // both sides open at once
	}
	if mine.hasISN && p.Seq == mine.isn {
		return false
	}
	answers := peer.hasISN && p.Ack-peer.isn-1 < 1<<16
	if mine.hasISN || mine.started {
		return !answers && (f.established() || mine.plain > 0)
	}
	return peer.hasISN && !answers && peer.plain > 0
}

// unwrap extends a sequence number to 64 bits, next to what was seen last.
func (h *half) unwrap(seq uint32) uint64 {
	if !h.started {
		return 1<<32 | uint64(seq)
	}
	return h.edge + uint64(int64(int32(seq-uint32(h.edge))))
}

// add counts a segment; its payload is counted by payload.
func (f *flow) add(p *packet.Packet, dir int) {
	f.start = min(f.start, p.TimeNS)
	f.last = max(f.last, p.TimeNS)
	h := &f.half[dir]
	h.segments++
	if p.Flags&packet.ACK != 0 && !h.hasAck {
		h.firstAck, h.hasAck = p.Ack, true
	}
	switch {
	case p.Flags&packet.RST != 0:
		f.reset = f.reset || !(f.half[client].fin && f.half[server].fin)
		return
	case p.Flags&packet.SYN != 0:
		f.addSYN(p, dir)
	case p.Flags&packet.ACK != 0:
		h.plain++
		if !p.OptionsCut {
			h.whole++
		}
		if f.ackNS == 0 && f.synAckNS != 0 && dir == f.opener {
			f.ackNS = p.TimeNS
		}
	}
	if p.Flags&packet.FIN != 0 {
		h.fin = true
	}
}

func (f *flow) addSYN(p *packet.Packet, dir int) {
	h := &f.half[dir]
	if p.Flags&packet.ACK != 0 {
		f.synAcks++
		f.synAckNS = p.TimeNS
		if c := f.conn; c.capableSYN && !f.additional && !p.OptionsCut && p.Options.Has&packet.HasCapable == 0 {
			c.refused = true
		}
	} else if dir == f.opener {
		if f.syns == 0 {
			f.iface = p.Iface
			f.synNS = p.TimeNS
			f.synCut = p.OptionsCut
		}
		f.syns++
	}
	h.isn, h.hasISN = p.Seq, true
	if !h.started || h.seen.Bytes() == 0 {
		h.started = false
		h.low = h.unwrap(p.Seq + 1)
		h.edge, h.started = h.low, true
	}
}

// count counts the payload of a segment and appends to gaps the parts of it
// that are new, in unwrapped sequence numbers.
func (h *half) count(p *packet.Packet, gaps []interval.Span) []interval.Span {
	seq := p.Seq
	if p.Flags&packet.SYN != 0 {
		seq++
	}
	lo := h.unwrap(seq)
	hi := lo + uint64(p.Payload)
	if !h.started {
		h.low, h.edge, h.started = lo, hi, true
	}
	h.low = min(h.low, lo)
	h.edge = max(h.edge, hi)
	if p.Payload == 0 {
		return gaps
	}
	h.payload += int64(p.Payload)
	gaps = h.seen.New(lo, hi, gaps)
	fresh := int64(h.seen.Add(lo, hi))
	if fresh < int64(p.Payload) {
		h.retransSegments++
		h.retransed += int64(p.Payload) - fresh
	}
	return gaps
}

// established says whether the TCP handshake ended well: the third ACK was
// seen, or what cannot come without it.
func (f *flow) established() bool {
	up, down := &f.half[client], &f.half[server]
	return f.ackNS != 0 || (up.plain > 0 && down.plain > 0) || up.carried() || down.carried()
}

// carried says whether payload was seen outside of a SYN.
func (h *half) carried() bool { return h.plain > 0 && h.payload > 0 }

func (f *flow) closed() string {
	switch {
	case f.reset:
		return "rst"
	case f.half[client].fin && f.half[server].fin:
		return "fin"
	}
	return "open"
}
