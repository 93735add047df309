package mptcp

import (
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
	"mplab/internal/list"
)

// Conn is a TCP or MPTCP connection. Its fields change during its life.
//
// Offsets of a connection without MPTCP, or with a fallback in the handshake,
// are relative TCP sequence numbers: 0 is the byte after the SYN, or the first
// byte seen if there was no SYN. An MPTCP connection with unknown keys counts
// from the first data sequence number seen; data below it is in the rows, but
// is not reported to observers.
type Conn struct {
	ID    int32
	MPTCP bool
	Subs  []*Sub // in order of creation; if there are very many, those that ended are removed

	startNS, lastNS int64
	live            int32 // subflows whose flow has not ended
	made            int32 // number of subflows ever created
	version         int32 // −1: unknown, or plain TCP
	plain           bool  // counted by TCP sequence number: no MPTCP, or fallback in the handshake
	orphan          bool  // its start was not seen: conclude no fallback from missing packets
	fastclose       bool
	checksum        bool
	payloadAsked    bool
	capable         uint8 // the MP_CAPABLE options seen: sawSYN, sawSYNACK, sawACK
	fallback        note  // cause
	capableNS       int64 // the first MP_CAPABLE SYN; 0: not seen

	multi     *multi // only for MPTCP
	events    []event
	payload   Payload
	totals    *totals // sums over the subflows whose rows are written
	handovers int32

	list.Links[Conn] // in Engine.waiting

	first Sub // storage of the first subflow
	slot  [1]*Sub
}

// multi is the part of a connection that only MPTCP needs.
type multi struct {
	key, idsn        [2]uint64
	token            [2]uint32 // the token that identifies this side
	hasKey, hasToken [2]bool
	data             *[2]direction // nil before the first data sequence signal
	waitingRows      []waitingReinjection
	addresses        []packet.Addr // referenced by events
}

// Sub is a subflow; a plain TCP connection has one.
type Sub struct {
	Conn       *Conn
	Flow       *tcp.Flow
	Interface  string
	Network    string
	ID         int32
	AddressID  int32 // −1: unknown
	Additional bool  // made by MP_JOIN
	Turned     bool  // opened by the server: Flow's directions are reversed

	turn        uint8 // 1 if Turned: flow direction ^ turn = connection direction
	watch       watch
	syn         synSeen
	opened      bool // the TCP handshake is complete
	reset       bool
	removed     bool // REMOVE_ADDR contained its address
	ended       bool
	firstNewDir uint8
	resetBy     uint8      // the sender of the RST, if reset
	resetReason int16      // −1: none
	joined      *joinState // only for additional subflows
	side        [2]side
	half        [2]*half // only for MPTCP, after the first data sequence signal or payload
	early       *early   // plain TCP that can still turn out to be MPTCP

	progressNS int64 // last new payload, or last acknowledgement of new payload
	firstNewNS int64 // first data that no other subflow had carried; 0: none yet
}

// synSeen describes what was captured of a subflow's SYN.
type synSeen uint8

const (
	synMissing synSeen = iota
	synCut             // its options were cut off
	synWhole
)

// watch is the set of conditions that a subflow waits for.
type watch uint8

const (
	watchHandshake watch = 1 << iota // not yet established
	watchSuspect                     // a reinjection of its data waits for a sign of life
)

// side is the state of one side of a subflow, with or without MPTCP.
type side struct {
	heardNS       int64
	isn           uint64 // unwrapped initial sequence number
	origin        uint64 // unwrapped sequence number of offset 0 in plain TCP
	plainReported uint64 // unwrapped sequence number up to which bytes were reported as plain TCP
	rate          rate
	hasISN        bool // known from the SYN or from a mapping
	hasOrigin     bool
	carried       bool // has sent payload
	zeroWindow    bool
	fin           bool
	backup        bool  // the last B bit that it sent
	addressID     int16 // −1: unknown
}

// over reports whether a subflow has ended, even if packets still follow.
func (s *Sub) over() bool {
	return s.side[Up].fin || s.side[Down].fin || s.reset || s.removed || s.ended
}

// open creates the subflow of a flow, and finds or creates its connection.
func (e *Engine) open(seg *tcp.Segment) *Sub {
	e.warnings.FlowsEvicted += e.missed // this flow might belong to one of those connections
	e.missed = 0
	p := seg.Packet
	syn := p.Flags&(packet.SYN|packet.ACK) == packet.SYN
	if syn && p.Has&packet.HasJoin != 0 {
		if j := p.Join(); j.Form == packet.JoinSYN {
			return e.join(seg, &j)
		}
	}
	c := e.newConn(p)
	s := c.add(e, seg.Flow)
	if syn && p.Has&packet.HasCapable != 0 {
		e.becomeMPTCP(c, int32(p.Capable().Version))
	}
	e.announce(s)
	return s
}

func (e *Engine) newConn(p *packet.Packet) *Conn {
	c := e.spare.conns.get()
	c.ID, c.startNS, c.lastNS, c.version, c.plain = e.nextID, p.TimeNS, p.TimeNS, -1, true
	c.Subs = c.slot[:0]
	e.nextID++
	if e.options.Number != nil {
		c.ID = e.options.Number(p)
	}
	return c
}

func (e *Engine) becomeMPTCP(c *Conn, version int32) {
	c.MPTCP, c.plain, c.version = true, false, version
	c.multi = e.spare.multis.get()
}

// add creates the next subflow of a connection.
func (c *Conn) add(e *Engine, f *tcp.Flow) *Sub {
	s := &c.first
	if c.made > 0 {
		s = &Sub{}
	}
	*s = Sub{Conn: c, ID: c.made, Flow: f, AddressID: -1, watch: watchHandshake, resetReason: -1}
	s.side[Up].addressID, s.side[Down].addressID = -1, -1
	s.Interface = e.options.Interfaces(f.Iface)
	s.Network = e.options.Network(s.Interface, f)
	f.Owner = s
	c.Subs = append(c.Subs, s)
	c.made++
	c.live++
	return s
}

func (e *Engine) announce(s *Sub) {
	if e.observer != nil {
		e.observer.Subflow(s)
	}
}

// established reports whether a subflow could carry data of the connection. An
// additional subflow needs SYN, SYN/ACK and an ACK with a valid HMAC, or a DSS.
func (s *Sub) established() bool {
	if !s.Additional || s.Conn.plain {
		return s.opened
	}
	return s.joined.complete() || s.signals(Up)+s.signals(Down) > 0
}

func (s *Sub) signals(dir int) int64 {
	if s.half[dir] == nil {
		return 0
	}
	return s.half[dir].signals
}

// flowDir converts a direction of the connection to one of the flow, and vice
// versa.
func (s *Sub) flowDir(dir uint8) uint8 { return (dir ^ s.turn) & 1 }
