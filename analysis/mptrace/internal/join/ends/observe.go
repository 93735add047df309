package ends

import (
	"mplab/analysis/mptrace/internal/mptcp"
	"mplab/analysis/mptrace/internal/observe"
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// follower follows the connections in the packets of one end and notifies an
// observer.
type follower interface {
	add(*packet.Packet)
	close()
}

// engine is the follower for TCP and Multipath TCP.
type engine struct {
	tracker *tcp.Tracker
	engine  *mptcp.Engine
	segment tcp.Segment
}

func follow(o Options, interfaces func(int32) string, observer mptcp.Observer) follower {
	e := &engine{}
	e.engine = mptcp.New(mptcp.Options{Interfaces: interfaces, Network: o.Network, Observer: observer}, new(tables.Sink), new(tables.Warnings))
	e.tracker = tcp.NewTracker(tcp.Options{OnEnd: e.engine.EndFlow, OnRetransmission: e.engine.Retransmission})
	return e
}

func (e *engine) add(p *packet.Packet) {
	e.tracker.Add(p, &e.segment)
	e.engine.Add(&e.segment)
}

func (e *engine) close() {
	e.tracker.Close()
	e.engine.Close()
}

// connection is a connection at both ends.
type connection struct {
	id    int32 // at the phone; −1: not seen there
	mptcp bool
	ends  [2]*mptcp.Conn // the connection in the engine of each end
	split bool           // the ends disagree about which subflows belong together
	turn  [2]bool        // the engine of the end calls the proxy's direction up
	dirs  [2]data        // by Up and Down of this package
	ended [2]bool
}

// subflow is a flow in the phone's engine.
type subflow struct {
	id      int32
	iface   string
	network string
}

// observer receives the events of the engine of one end.
type observer struct {
	observe.None
	end     int
	measure *measure
	now     *flow // flow of the current packet
	dir     uint8
	packet  *packet.Packet
	flows   map[*mptcp.Sub]*flow
	conns   map[*mptcp.Conn]*connection
}

func newObserver(end int, m *measure) *observer {
	return &observer{end: end, measure: m, flows: map[*mptcp.Sub]*flow{}, conns: map[*mptcp.Conn]*connection{}}
}

// Interest includes repeated acknowledgements: data that they cover may have
// arrived since.
func (o *observer) Interest() mptcp.Interest { return mptcp.Repeats }

// Subflow links a subflow to the flow of its first packet.
func (o *observer) Subflow(s *mptcp.Sub) {
	f := o.now
	if f == nil {
		return
	}
	o.flows[s] = f
	c := o.conns[s.Conn]
	if c == nil {
		c = o.connection(f, s)
	}
	if f.conn == nil {
		f.conn = c
	} else if f.conn != c {
		f.conn.split, c.split = true, true
	}
	if o.end == phoneEnd {
		f.sub = &subflow{id: s.ID, iface: s.Interface, network: s.Network}
	}
}

func (o *observer) connection(f *flow, s *mptcp.Sub) *connection {
	c := f.conn
	if c == nil || c.ends[o.end] != nil {
		if c != nil {
			c.split = true
		}
		c = &connection{id: -1, split: c != nil}
		o.measure.conns = append(o.measure.conns, c)
	}
	o.conns[s.Conn] = c
	c.ends[o.end] = s.Conn
	client := s.Flow.Ends[tcp.Up]
	if s.Turned {
		client = s.Flow.Ends[tcp.Down]
	}
	sender := tcp.Endpoint{Addr: o.packet.Src, Port: o.packet.SrcPort}
	c.turn[o.end] = (client == sender) != (o.dir == Up)
	if o.end == phoneEnd {
		c.id = s.Conn.ID
	}
	if s.Flow.SYNSeen && !s.Additional { // data starts at 0
		at := &c.dirs[1-o.end].waiting
		at.started = true
	}
	return c
}

// direction converts a direction of the engine to one of this package.
func (o *observer) direction(c *connection, dir int) int {
	if c.turn[o.end] {
		return 1 - dir
	}
	return dir
}

// Data records the data that the receiver got and, at the sender, the data that
// a second subflow carries again.
func (o *observer) Data(s *mptcp.Sub, dir int, timeNS int64, lo, hi uint64, original *mptcp.Sub) {
	f, c := o.flows[s], o.conns[s.Conn]
	if f == nil || c == nil || lo >= hi {
		return
	}
	c.mptcp = c.mptcp || s.Conn.MPTCP
	dir = o.direction(c, dir)
	d, now := &c.dirs[dir], o.measure.matcher.phoneTime(o.end, timeNS)
	if dir != o.end {
		d.waiting.arrive(lo, hi, now)
		if c.mptcp {
			d.on(f).add(lo, hi, now)
		}
		return
	}
	if from := o.flows[original]; original != nil && original != s && from != nil {
		d.again = append(d.again, reinjected{lo, hi, now, from, f})
	}
}

func (d *data) on(f *flow) *arrivals {
	a := d.arrivals[f]
	if a == nil {
		if d.arrivals == nil {
			d.arrivals = map[*flow]*arrivals{}
		}
		a = new(arrivals)
		d.arrivals[f] = a
	}
	return a
}

// Ack records the data that the receiver acknowledged.
func (o *observer) Ack(s *mptcp.Sub, dir int, timeNS int64, offset uint64, _ uint32) {
	c := o.conns[s.Conn]
	if c == nil {
		return
	}
	if dir = o.direction(c, dir); dir != o.end {
		c.dirs[dir].waiting.acknowledged(offset, o.measure.matcher.phoneTime(o.end, timeNS))
	}
}

// End forgets a connection. Its rows wait for the other end.
func (o *observer) End(c *mptcp.Conn, _ *tables.Connection) {
	for _, s := range c.Subs {
		delete(o.flows, s)
	}
	if one := o.conns[c]; one != nil {
		one.ended[o.end] = true
	}
	delete(o.conns, c)
}
