package xplot

import (
	"fmt"
	"net/netip"

	"mplab/analysis/mptrace/internal/mptcp"
	"mplab/analysis/mptrace/internal/observe"
	"mplab/analysis/mptrace/internal/observe/spool"
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// Observer writes the diagrams.
type Observer struct {
	observe.None
	dir   *spool.Dir
	conns observe.States[connection]
}

type connection [2]*direction

// New creates the directory if it is missing.
func New(dir string) (*Observer, error) {
	d, err := spool.New(dir)
	if err != nil {
		return nil, err
	}
	return &Observer{dir: d}, nil
}

// Close completes the files. The error names the first file that could not be
// written.
func (o *Observer) Close() error { return o.dir.Close() }

// Err returns the first write error so far.
func (o *Observer) Err() error { return o.dir.Err() }

// direction returns the drawing state of a direction, or nil before its first
// data.
func (o *Observer) direction(c *mptcp.Conn, dir int) *direction {
	if at := o.conns.Get(c); at != nil {
		return at[dir]
	}
	return nil
}

func (o *Observer) begin(s *mptcp.Sub, dir int, timeNS int64) *direction {
	at := o.conns.Get(s.Conn)
	if at == nil {
		at = new(connection)
		o.conns.Put(s.Conn, at)
	}
	at[dir] = newDirection(o.dir, s, dir, timeNS)
	return at[dir]
}

// Data draws data.
func (o *Observer) Data(s *mptcp.Sub, dir int, timeNS int64, lo, hi uint64, original *mptcp.Sub) {
	d := o.direction(s.Conn, dir)
	if d == nil {
		d = o.begin(s, dir, timeNS)
	}
	d.data(timeNS, lo, hi, s, original)
}

// Mapping draws the ends of a mapping.
func (o *Observer) Mapping(s *mptcp.Sub, dir int, timeNS int64, lo, hi uint64) {
	d := o.direction(s.Conn, dir)
	if d == nil {
		d = o.begin(s, dir, timeNS)
	}
	colour := subflowColour(s.ID)
	mark(d.seq, "darrow", timeNS, lo, colour)
	mark(d.seq, "uarrow", timeNS, hi, colour)
}

// Ack draws acknowledgement and window.
func (o *Observer) Ack(s *mptcp.Sub, dir int, timeNS int64, offset uint64, window uint32) {
	if d := o.direction(s.Conn, dir); d != nil {
		d.ack(timeNS, offset, offset+uint64(window), s.ID)
	}
}

// marks maps events to the text that is written into the sender's diagram.
var marks = map[string]string{
	"fin": "FIN", "rst": "RST", "data-fin": "DATA_FIN", "mp-fail": "MP_FAIL", "mp-fastclose": "FASTCLOSE", "fallback": "fallback", "handover": "handover",
}

// Event draws the event's mark, if it has one.
func (o *Observer) Event(s *mptcp.Sub, row *tables.Event) {
	dir := mptcp.Up
	if row.Direction == tables.Down {
		dir = mptcp.Down
	}
	if text := marks[row.Event]; text != "" {
		if d := o.direction(s.Conn, dir); d != nil {
			d.seq.text("atext", row.TimeNS, d.highest, "orange", text)
		}
	}
}

// Segment draws properties of the whole segment: throughput and SACK blocks.
func (o *Observer) Segment(s *mptcp.Sub, dir int, seg *tcp.Segment) {
	if seg.Duplicate {
		return
	}
	if d := o.direction(s.Conn, dir); d != nil && seg.Lo < seg.Hi {
		d.segment(seg)
	}
	if seg.Packet.Has&packet.HasSACK != 0 && !s.Conn.MPTCP {
		if d := o.direction(s.Conn, 1-dir); d != nil {
			d.selective(seg.Packet)
		}
	}
}

// End completes the diagrams of a connection.
func (o *Observer) End(c *mptcp.Conn, _ *tables.Connection) {
	at := o.conns.Take(c)
	if at == nil {
		return
	}
	for _, d := range at {
		if d != nil {
			d.end()
		}
	}
}

// title returns the name of a direction as tcptrace writes it.
func title(s *mptcp.Sub, dir int) string {
	from, to := s.Flow.Ends[dir], s.Flow.Ends[1-dir]
	if s.Turned {
		from, to = to, from
	}
	return address(from) + "_==>_" + address(to)
}

func address(e tcp.Endpoint) string { return netip.AddrPortFrom(e.Addr.Netip(), e.Port).String() }

var names = [2]string{"c2s", "s2c"}

func name(dir int, kind string, id int32) string {
	return fmt.Sprintf("%s_%s_%d.xpl", names[dir], kind, id)
}
