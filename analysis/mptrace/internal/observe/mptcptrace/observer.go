package mptcptrace

import (
	"fmt"

	"mplab/analysis/mptrace/internal/mptcp"
	"mplab/analysis/mptrace/internal/observe"
	"mplab/analysis/mptrace/internal/observe/spool"
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// Observer writes the files of each MPTCP connection.
type Observer struct {
	observe.None
	dir      *spool.Dir
	capture  string
	warnings *tables.Warnings
	conns    observe.States[connection]
	begun    int // number of connections so far
	totals   totals
	out      *spool.File
}

// New creates the directory if it is missing. capture is the first column of
// the statistics. warnings, which may be nil, is read by Close.
func New(dir, capture string, warnings *tables.Warnings) (*Observer, error) {
	d, err := spool.New(dir)
	if err != nil {
		return nil, err
	}
	if warnings == nil {
		warnings = new(tables.Warnings)
	}
	return &Observer{dir: d, capture: capture, warnings: warnings, out: d.File("mptcptrace.out")}, nil
}

// Close writes the files that belong to no single connection. All connections
// must have ended.
func (o *Observer) Close() error {
	o.out.Close()
	o.totals.write(o.dir.File("file_stats.csv"), o.warnings)
	info := o.dir.File("mptcptrace_info")
	fmt.Fprintln(info, "version: 0.1 (as mptcptrace; written by mptrace)")
	info.Close()
	log := o.dir.File("mptcptrace.log")
	fmt.Fprint(log, Differences)
	log.Close()
	return o.dir.Close()
}

// Err returns the first write error so far.
func (o *Observer) Err() error { return o.dir.Err() }

// of returns the state of a connection, or nil for plain TCP.
func (o *Observer) of(s *mptcp.Sub, timeNS int64) *connection {
	c := o.conns.Get(s.Conn)
	if c == nil {
		if !s.Conn.MPTCP {
			return nil
		}
		c = newConnection(o.dir, o.begun, timeNS)
		o.begun++
		o.conns.Put(s.Conn, c)
	}
	if int(s.ID) >= len(c.subs) {
		c.meet(s.Conn.Subs)
	}
	return c
}

// Subflow adds a new subflow.
func (o *Observer) Subflow(s *mptcp.Sub) { o.of(s, s.Flow.StartNS) }

// Data writes a row of seq.
func (o *Observer) Data(s *mptcp.Sub, dir int, timeNS int64, lo, hi uint64, original *mptcp.Sub) {
	if c := o.of(s, timeNS); c != nil {
		n := note{sub: int(s.ID), dir: dir, timeNS: timeNS, lo: lo, hi: hi, original: -1}
		if original != nil {
			n.original = int(original.ID)
		}
		c.take(n)
	}
}

// Ack writes the rows of an acknowledgement.
func (o *Observer) Ack(s *mptcp.Sub, dir int, timeNS int64, offset uint64, window uint32) {
	if c := o.of(s, timeNS); c != nil {
		c.take(note{ack: true, sub: int(s.ID), dir: dir, timeNS: timeNS, lo: offset, hi: offset + uint64(window)})
	}
}

// Event writes the addresses that the sides announce to each other.
func (o *Observer) Event(s *mptcp.Sub, row *tables.Event) {
	c := o.of(s, row.TimeNS)
	if c == nil {
		return
	}
	way := 0 // mptcptrace's number of a direction
	if row.Direction == tables.Up {
		way = 1
	}
	switch row.Event {
	case "add-addr":
		fmt.Fprintf(c.addAddr, "%d,%s\n", way, row.Address)
	case "remove-addr":
		fmt.Fprintf(c.rmAddr, "%d,%d\n", way, row.AddressID.Value)
	case "mp-fastclose":
		o.totals.fastclose[1-way]++
	}
}

// Segment reads the options of a segment and writes the values that the segment
// changed.
func (o *Observer) Segment(s *mptcp.Sub, dir int, seg *tcp.Segment) {
	p := seg.Packet
	c := o.of(s, p.TimeNS)
	if c == nil || seg.Duplicate {
		return
	}
	if p.Has&packet.HasCapable != 0 {
		c.learn(dir, p)
	}
	if p.Flags&packet.SYN != 0 {
		c.subs[s.ID].scale[dir] = p.WindowScale()
	}
	if len(c.waiting) > 0 {
		c.fix()
	}
	c.flights(int(s.ID), dir, seg)
}

// End writes the remaining files of a connection and forgets it.
func (o *Observer) End(mc *mptcp.Conn, row *tables.Connection) {
	c := o.conns.Take(mc)
	if c == nil {
		return
	}
	c.fix()
	o.totals.add(c, row)
	c.text(o.out)
	stats := o.dir.File(fmt.Sprintf("stats_%d.csv", c.number))
	c.stats(statistics{stats, o.capture, c.number})
	stats.Close()
	c.close()
}
