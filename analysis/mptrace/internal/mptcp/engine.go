package mptcp

import (
	"math"

	"mplab/analysis/mptrace/internal/interval"
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
	"mplab/internal/list"
)

// Sides of a connection and the directions that they send: the client sends Up.
// If the server opened a subflow, its tcp.Flow is reversed. Engine and
// observers always use the connection's directions.
const (
	Up   = 0
	Down = 1
)

// Options of an [Engine]. Zero values select the defaults.
type Options struct {
	Samples    int                                    // as in tcp.Options; also bounds bursts and points
	Number     func(p *packet.Packet) int32           // returns the number of a connection by its first packet; nil: count from 0
	Interfaces func(int32) string                     // returns the name of an interface
	Network    func(iface string, f *tcp.Flow) string // wifi, cellular, …; "" if unknown
	Observer   Observer                               // nil: none
	Payload    func(c *Conn) Payload                  // called at a connection's first captured payload; nil: none
	Describe   func(row *tables.Connection, c *Conn)  // completes a connection's row: names and destinations; nil: none
	Release    func(f *tcp.Flow)                      // called when the rows of an ended flow are written; nil: none
}

// Engine follows connections. It is not safe for concurrent use.
type Engine struct {
	options  Options
	observer Observer
	out      tables.Sink
	warnings *tables.Warnings

	nowNS     int64 // time of the last packet
	nextID    int32
	tokens    map[uint32]tokenOwner
	earlier   map[uint32][]tokenOwner // older owners of tokens with several owners
	orphans   map[uint32]*Conn        // by token: connections of joins whose initial subflow was not seen
	waiting   list.List[Conn, *Conn]  // connections without live subflows that may get another one
	wakeNS    int64                   // when the first of them has waited for patienceNS
	missed    int64                   // number of them that ended early since the last new flow
	rates     bool                    // the table throughput is wanted
	eventful  bool                    // events are wanted for the table or by the observer
	listening bool                    // there is an observer or a payload reader
	interest  Interest                // of the observer

	fastSegment tcp.Segment // captured payload on the fast path, in fastPacket
	fastPacket  packet.Packet

	spare  spares
	spans  [2][]interval.Span // scratch
	pieces []piece            // scratch

	// Of the current segment, which may be accounted in several parts:
	counted bool   // it was counted as a segment with new data
	shift   uint64 // relative data number + shift = subflow sequence number
}

// New returns an engine that writes rows into a sink and counts warnings.
func New(o Options, out *tables.Sink, warnings *tables.Warnings) *Engine {
	if o.Samples == 0 {
		o.Samples = defaultSamples
	}
	if o.Interfaces == nil {
		o.Interfaces = func(int32) string { return "" }
	}
	if o.Network == nil {
		o.Network = func(string, *tcp.Flow) string { return "" }
	}
	return &Engine{
		options: o, observer: o.Observer, out: *out, warnings: warnings,
		tokens: map[uint32]tokenOwner{}, orphans: map[uint32]*Conn{}, wakeNS: math.MaxInt64,
		rates: out.Throughput != nil, eventful: out.Events != nil || interestOf(o.Observer)&Events != 0,
		listening: o.Observer != nil || o.Payload != nil, interest: interestOf(o.Observer),
	}
}

const defaultSamples = 1000

// rareFlags and rareOptions mark segments with more than data, ACK and DSS.
const (
	rareFlags   = packet.SYN | packet.FIN | packet.RST
	rareOptions = packet.HasSignal | packet.HasBad
)

// Add processes a segment.
func (e *Engine) Add(seg *tcp.Segment) {
	p := seg.Packet
	e.nowNS = p.TimeNS
	if p.TimeNS >= e.wakeNS {
		e.wake()
	}
	if seg.Duplicate || seg.Late {
		e.leaveOut(seg)
		return
	}
	s, _ := seg.Flow.Owner.(*Sub)
	if s == nil {
		s = e.open(seg)
	}
	c := s.Conn
	dir := (seg.Dir ^ s.turn) & 1
	if p.TimeNS > c.lastNS {
		c.lastNS = p.TimeNS
	}
	side := &s.side[dir]
	side.heardNS = p.TimeNS
	if p.Flags&rareFlags != 0 || p.Has&rareOptions != 0 || s.watch != 0 || seg.Resumed {
		e.rare(s, dir, seg)
	}
	if (seg.Window == 0) != side.zeroWindow {
		e.windowTurned(s, dir, seg)
	}
	if seg.Acked != 0 || seg.Fresh != tcp.None {
		s.progressNS = p.TimeNS
	}
	if p.Payload != 0 && p.Flags&packet.RST == 0 {
		if !side.carried {
			e.firstPayload(s, dir)
		}
		if e.rates && side.rate.add(p.TimeNS, freshBytes(seg)) {
			e.rateRow(c, s.ID, tables.LevelTCP, dir, &side.rate)
		}
	}
	if !c.plain {
		e.multipath(s, dir, seg)
	} else if p.Has&packet.HasDSS != 0 && e.upgrade(s, seg) {
		e.multipath(s, dir, seg)
	} else {
		if s.syn != synWhole && !c.MPTCP {
			e.keepEarly(s, dir, seg)
		}
		if e.listening {
			e.tellPlain(s, dir, seg)
		}
	}
	if e.interest&Segments != 0 {
		e.observer.Segment(s, int(dir), seg)
	}
}

// firstPayload records the first payload of a side.
func (e *Engine) firstPayload(s *Sub, dir uint8) {
	s.side[dir].carried = true
	e.happened(s, dir, evFirstData)
}

func freshBytes(seg *tcp.Segment) uint64 {
	switch seg.Fresh {
	case tcp.All:
		return seg.Hi - seg.Lo
	case tcp.Some:
		return total(seg.Gaps)
	}
	return 0
}

func total(spans []interval.Span) uint64 {
	var n uint64
	for _, s := range spans {
		n += s.Len()
	}
	return n
}

// leaveOut counts a segment that is otherwise ignored.
func (e *Engine) leaveOut(seg *tcp.Segment) {
	if seg.Late {
		e.warnings.SegmentsLate++
		if seg.Packet.Flags&packet.RST == 0 {
			e.warnings.LateBytes += int64(seg.Packet.Payload)
		}
	} else {
		e.warnings.SegmentsDuplicate++
	}
}

// EndFlow processes the end of a flow. Use it as tcp.Options.OnEnd.
func (e *Engine) EndFlow(f *tcp.Flow) {
	if s, _ := f.Owner.(*Sub); s != nil {
		e.endSub(s)
	}
}

// Retransmission writes a retransmission. Use it as
// tcp.Options.OnRetransmission.
func (e *Engine) Retransmission(r *tcp.Retransmission) {
	if s, _ := r.Flow.Owner.(*Sub); s != nil && e.out.Retransmissions != nil {
		e.out.Retransmissions.Add(s.retransmissionRow(r))
	}
}

// Close ends all connections, in the order of their numbers. The flows must
// have ended.
func (e *Engine) Close() {
	e.endWaiting(func(*Conn) bool { return true })
}
