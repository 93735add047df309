package mptcp

import (
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
)

// Conn is a TCP or MPTCP connection. Fields change while it lives.
//
// Offsets of a connection without MPTCP, and of one that fell back at the
// handshake, are relative TCP sequence numbers: 0 is the byte behind the SYN,
// or the first one seen when there was no SYN. An MPTCP connection whose keys
// were not seen counts from the first data sequence number seen; what lies
// below is in the rows and not told.
type Conn struct {
	ID    int32
	MPTCP bool
	Subs  []*Sub // in the order of their creation; of very many, those that ended go

	startNS, lastNS int64
	live            int32 // subflows whose flow has not ended
	made            int32 // subflows ever
	version         int32 // −1: not known, or plain TCP
	plain           bool  // counted by TCP sequence number: no MPTCP, or refused in the handshake
	orphan          bool  // its beginning was not seen: no fallback is concluded from what is missing
	fastclose       bool
	checksum        bool
	payloadAsked    bool
	capable         uint8 // which MP_CAPABLE were seen, by handshakeStep
	fallback        note  // cause
	capableNS       int64 // the first MP_CAPABLE SYN; 0: not seen

	multi     *multi // of MPTCP
	events    []event
	payload   Payload
	totals    *totals // of subflows whose rows are written
	handovers int32

	prev, next *Conn // among those that wait

	first Sub // the memory of the first subflow
	slot  [1]*Sub
}

// multi is what only an MPTCP connection has.
type multi struct {
	key, idsn        [2]uint64
	token            [2]uint32 // by which the other side addresses this one
	hasKey, hasToken [2]bool
	data             *[2]direction // since the first data sequence signal
	waitingRows      []waitingReinjection
	addresses        []packet.Addr // of events
}

// Sub is a subflow; a plain TCP connection has one.
type Sub struct {
	Conn       *Conn
	Flow       *tcp.Flow
	Interface  string
	Network    string
	ID         int32
	AddressID  int32 // −1: not known
	Additional bool  // made by MP_JOIN
	Turned     bool  // opened by the server: Flow's directions are the other way round

	turn        uint8 // 1 when turned: the flow's direction ^ turn is the connection's
	watch       watch
	syn         synSeen
	opened      bool // the TCP handshake has ended well
	reset       bool
	removed     bool // REMOVE_ADDR named its address
	ended       bool
	firstNewDir uint8
	resetBy     uint8      // while reset: who sent the RST
	resetReason int16      // −1: none
	joined      *joinState // of additional subflows
	side        [2]side
	half        [2]*half // of MPTCP, since the first data sequence signal or payload
	early       *early   // of plain TCP that may turn out to be MPTCP

	progressNS int64 // last new payload or acknowledgement of new payload
	firstNewNS int64 // first data that no subflow carried before; 0: none yet
}

// synSeen says what is known of a subflow's SYN.
type synSeen uint8

const (
	synMissing synSeen = iota
	synCut             // its options were not captured whole
	synWhole
)

// watch says what a subflow still waits for.
type watch uint8

const (
	watchHandshake watch = 1 << iota // not established yet
	watchSuspect                     // a reinjection from it waits to know whether it still lives
)

// side is what one side does on a subflow, whether MPTCP or not.
type side struct {
	heardNS    int64
	isn        uint64 // unwrapped initial sequence number
	origin     uint64 // unwrapped sequence number of offset 0 in plain TCP
	plainTold  uint64 // unwrapped sequence number up to which bytes were told of as plain TCP
	rate       *rate  // since the first payload, when the table is wanted
	hasISN     bool   // the SYN was seen, or a mapping told
	hasOrigin  bool
	carried    bool // payload
	zeroWindow bool
	fin        bool
	backup     bool  // the B bit that it set last
	addressID  int16 // −1: not known
}

// over says whether a subflow has ended, whatever may still come on it.
func (s *Sub) over() bool {
	return s.side[Up].fin || s.side[Down].fin || s.reset || s.removed || s.ended
}

// open makes the subflow of a flow, and finds or makes its connection.
func (e *Engine) open(seg *tcp.Segment) *Sub {
	e.warnings.FlowsEvicted += e.missed // this flow might have been of one of them
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
	return c
}

func (e *Engine) becomeMPTCP(c *Conn, version int32) {
	c.MPTCP, c.plain, c.version = true, false, version
	c.multi = e.spare.multis.get()
}

// add makes the next subflow of a connection.
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

// established says whether a subflow could carry data of the connection. For
// an additional one: SYN, SYN/ACK and an ACK with a sound HMAC, or a DSS.
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

// flowDir is the flow's name of a connection's direction, and the other way round.
func (s *Sub) flowDir(dir uint8) uint8 { return (dir ^ s.turn) & 1 }
