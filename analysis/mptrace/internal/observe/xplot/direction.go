package xplot

import (
	"mplab/analysis/mptrace/internal/mptcp"
	"mplab/analysis/mptrace/internal/observe"
	"mplab/analysis/mptrace/internal/observe/spool"
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
)

// direction draws one direction's data.
type direction struct {
	mptcp          bool
	seq, tput, rtt *plot

	highest uint64 // end of the data seen
	lowest  uint64 // start of the data in the current segment
	pending bool   // lowest is valid
	ahead   uint64 // TCP sequence number minus offset

	acked, edge stair
	unacked     observe.Unacked
	sample      sample // the previous round trip
	speed       speed
	blocks      []packet.SACKBlock
}

// stair is a rising step line.
type stair struct {
	timeNS int64
	y      uint64
	begun  bool
}

type sample struct {
	timeNS int64
	ms     float64
	known  bool
}

func newDirection(dir *spool.Dir, s *mptcp.Sub, way int, timeNS int64) *direction {
	file := func(kind string) *spool.File { return dir.File(name(way, kind, s.Conn.ID)) }
	who := title(s, way)
	return &direction{
		mptcp: s.Conn.MPTCP,
		seq:   newPlot(file("seq"), who+" (time sequence graph)", "sequence offset"),
		tput:  newPlot(file("tput"), who+" (throughput)", "thruput (bytes/sec)"),
		rtt:   newPlot(file("rtt"), who+" (rtt samples)", "rtt (ms)"),
		speed: speed{first: timeNS, last: timeNS},
	}
}

func (d *direction) data(timeNS int64, lo, hi uint64, s, original *mptcp.Sub) {
	if !d.pending || lo < d.lowest {
		d.pending, d.lowest = true, lo
	}
	d.highest = max(d.highest, hi)
	colour := "white"
	switch {
	case d.mptcp:
		colour = subflowColour(s.ID)
	case original != nil:
		colour = "red"
	}
	line(d.seq, timeNS, lo, timeNS, hi, colour)
	if !d.mptcp {
		mark(d.seq, "darrow", timeNS, lo, colour)
		mark(d.seq, "uarrow", timeNS, hi, colour)
	}
	switch {
	case original == nil:
		d.unacked.Add(observe.Piece{Lo: lo, Hi: hi, TimeNS: timeNS, Sub: s.ID})
		d.speed.bytes += hi - lo
	case !d.mptcp:
		d.seq.text("atext", timeNS, hi, "red", "R")
		d.unacked.Drop(lo, hi)
	case original == s:
		d.seq.text("atext", timeNS, hi, colour, "r")
	default:
		d.seq.text("atext", timeNS, hi, subflowColour(original.ID), "R")
	}
}

func (d *direction) ack(timeNS int64, offset, edge uint64, sub int32) {
	colour := "green"
	if d.mptcp {
		colour = "white"
	}
	d.acked.step(d.seq, timeNS, offset, colour, "dtick")
	d.edge.step(d.seq, timeNS, edge, "yellow", "utick")
	if pieces := d.unacked.Ack(offset); len(pieces) > 0 {
		last := pieces[len(pieces)-1]
		d.roundTrip(timeNS, float64(timeNS-last.TimeNS)/1e6, last.Sub)
	}
}

// step extends the line to a new height; tick marks an unchanged height.
func (s *stair) step(p *plot, timeNS int64, y uint64, colour, tick string) {
	switch {
	case !s.begun:
		s.begun = true
	case y == s.y:
		line(p, s.timeNS, y, timeNS, y, colour)
		mark(p, tick, timeNS, y, colour)
	default:
		line(p, s.timeNS, s.y, timeNS, s.y, colour)
		line(p, timeNS, s.y, timeNS, y, colour)
	}
	s.timeNS, s.y = timeNS, y
}

func (d *direction) roundTrip(timeNS int64, ms float64, sub int32) {
	colour := "red"
	if d.mptcp {
		colour = subflowColour(sub)
	}
	mark(d.rtt, "dot", timeNS, ms, colour)
	if d.sample.known {
		line(d.rtt, d.sample.timeNS, d.sample.ms, timeNS, ms, "white")
	}
	d.sample = sample{timeNS, ms, true}
}

// segment processes a segment whose data has been drawn.
func (d *direction) segment(seg *tcp.Segment) {
	if d.pending {
		d.ahead, d.pending = seg.Lo-d.lowest, false
	}
	d.speed.segment(d.tput, seg.Packet.TimeNS)
}

// selective draws the SACK blocks of plain TCP.
func (d *direction) selective(p *packet.Packet) {
	d.blocks = p.SACK(d.blocks[:0])
	for _, block := range d.blocks {
		lo, hi := d.offset(block.Lo), d.offset(block.Hi)
		if lo < hi && hi <= d.highest {
			line(d.seq, p.TimeNS, lo, p.TimeNS, hi, "purple")
			d.seq.text("rtext", p.TimeNS, hi, "purple", "S")
		}
	}
}

// offset converts a number from the wire, which must not be above the highest
// byte seen.
func (d *direction) offset(wire uint32) uint64 {
	back := uint32(d.ahead+d.highest) - wire
	return d.highest - uint64(back)
}

func (d *direction) end() {
	d.speed.end(d.tput)
	d.seq.end()
	d.tput.end()
	d.rtt.end()
}
