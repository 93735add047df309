package sequence

import (
	"mplab/analysis/mptrace/internal/mptcp"
	"mplab/analysis/mptrace/internal/observe"
	"mplab/analysis/mptrace/tables"
)

// DefaultSamples is how many points of a kind a direction keeps at least
// before every second is dropped.
const DefaultSamples = 1000

// A connection is small when neither direction has Small bytes of new data.
// The tables of many small connections would consist of points for the most
// part, so only the first ones have some, until there are SmallRows rows.
const (
	Small     = 100_000
	SmallRows = 100_000
)

// Observer keeps the points of each direction while its connection lives, and
// writes them when it ends: first those of up, then those of down, each in the
// order of time.
type Observer struct {
	observe.None
	out     *tables.Stream[tables.Point]
	all     bool // also of small connections
	rows    int  // of small connections
	budget  budget
	pool    pool
	conns   observe.States[connection]
	spare   []*connection
	spares  []*direction
	sources []source
}

// connection is what is known of a connection: its calls, and points instead
// when it is not small or there are many calls.
type connection struct {
	calls calls
	large bool      // has points
	begun [2]bool   // there was data
	bytes [2]uint64 // new data
	acked [2]uint64 // of the last acknowledgement
	edge  [2]uint64 // of its window
	dirs  [2]*direction
}

// direction holds the points of a direction's data.
type direction struct {
	sent [3]kind // new, retransmitted, reinjected
	acks kind    // bytes is the right edge of the window
}

const (
	fresh = iota
	again
	reinjected
)

// New returns an observer that writes into a stream. Of each kind of points a
// direction keeps up to twice as many as samples says; 0 stands for
// [DefaultSamples], −1 for all, also those of small connections.
func New(samples int, out *tables.Stream[tables.Point]) *Observer {
	o := &Observer{out: out}
	switch {
	case samples == 0:
		samples = DefaultSamples
	case samples < 0:
		samples, o.all = 1<<40, true
	}
	o.budget.limit = 2 * samples
	return o
}

// Interest implements [mptcp.Choosy]: points need neither mappings nor
// acknowledgements that tell nothing new.
func (*Observer) Interest() mptcp.Interest { return 0 }

// Data takes data that was sent.
func (o *Observer) Data(s *mptcp.Sub, dir int, timeNS int64, lo, hi uint64, original *mptcp.Sub) {
	c := o.conns.Get(s.Conn)
	if c == nil {
		c = o.begin(s.Conn)
	}
	if !c.begun[dir] {
		c.begun[dir], c.calls.base[dir] = true, lo
	}
	what := uint8(reinjected)
	switch original {
	case nil:
		what = fresh
		c.bytes[dir] += hi - lo
	case s:
		what = again
	}
	if c.large || !o.later(c, timeNS, what, uint8(dir), lo, hi-lo, s.ID) {
		o.data(c, what, dir, timeNS, lo, hi-lo, s.ID)
	}
}

// Ack takes an acknowledgement. Those that tell nothing new are left out.
func (o *Observer) Ack(s *mptcp.Sub, dir int, timeNS int64, offset uint64, window uint32) {
	c := o.conns.Get(s.Conn)
	if c == nil || !c.begun[dir] { // no data yet
		return
	}
	edge := offset + uint64(window)
	if offset == c.acked[dir] && edge == c.edge[dir] {
		return
	}
	c.acked[dir], c.edge[dir] = offset, edge
	if c.large || !o.later(c, timeNS, acked, uint8(dir), offset, uint64(window), s.ID) {
		o.ack(c, dir, timeNS, offset, edge, s.ID)
	}
}

func (o *Observer) data(c *connection, what uint8, dir int, timeNS int64, lo, size uint64, sub int32) {
	k := &o.direction(c, dir).sent[what]
	t := k.of(sub)
	t.wait.timeNS, t.wait.offset = timeNS, lo
	t.wait.bytes += size
	t.wait.weight++
	if t.wait.weight >= t.stride {
		o.budget.keep(k, t)
	}
}

func (o *Observer) ack(c *connection, dir int, timeNS int64, offset, edge uint64, sub int32) {
	k := &o.direction(c, dir).acks
	t := k.of(0)
	t.wait.timeNS, t.wait.offset, t.wait.bytes, t.wait.sub = timeNS, offset, edge, sub
	t.wait.weight++
	if t.wait.weight >= t.stride {
		o.budget.keep(k, t)
	}
}

// later keeps a call for later, unless the connection is not small any more or
// the call cannot be kept: the points of those before it are made then.
func (o *Observer) later(c *connection, timeNS int64, what, dir uint8, at, size uint64, sub int32) bool {
	if c.bytes[dir] < Small && !o.all && o.pool.add(&c.calls, timeNS, what, dir, at, size, sub) {
		return true
	}
	o.enlarge(c)
	return false
}

// enlarge makes points of the calls so far.
func (o *Observer) enlarge(c *connection) {
	c.large = true
	c.calls.each(func(what, dir uint8, timeNS int64, at, size uint64, sub int32) {
		if what == acked {
			o.ack(c, int(dir), timeNS, at, at+size, sub)
		} else {
			o.data(c, what, int(dir), timeNS, at, size, sub)
		}
	})
	o.pool.drop(&c.calls)
}

func (o *Observer) begin(of *mptcp.Conn) *connection {
	c := take(&o.spare)
	o.conns.Put(of, c)
	return c
}

func (o *Observer) direction(c *connection, dir int) *direction {
	if c.dirs[dir] == nil {
		c.dirs[dir] = take(&o.spares)
		c.dirs[dir].acks.numbers = true
	}
	return c.dirs[dir]
}

// End writes the rows of a connection.
func (o *Observer) End(of *mptcp.Conn, _ *tables.Connection) {
	c := o.conns.Take(of)
	if c == nil {
		return
	}
	small := !o.all && c.bytes[mptcp.Up] < Small && c.bytes[mptcp.Down] < Small
	if wanted := !small || o.rows < SmallRows; wanted {
		n := o.write(of, c)
		if small {
			o.rows += n
		}
	}
	o.recycle(c)
}

// write returns how many rows there were.
func (o *Observer) write(of *mptcp.Conn, c *connection) int {
	if !c.large {
		o.enlarge(c)
	}
	level := tables.LevelTCP
	if of.MPTCP {
		level = tables.LevelMPTCP
	}
	n := 0
	for dir, d := range c.dirs {
		if d != nil {
			n += o.writeDirection(d, tables.Point{ConnectionID: of.ID, Level: level, Direction: tables.Directions[dir]})
		}
	}
	return n
}

// recycle takes the memory of a connection for others.
func (o *Observer) recycle(c *connection) {
	o.pool.drop(&c.calls)
	for _, d := range c.dirs {
		if d != nil {
			o.budget.kept -= d.kept()
			if !o.all { // their memory may be large
				d.reset()
				give(&o.spares, d)
			}
		}
	}
	*c = connection{}
	give(&o.spare, c)
}

func (d *direction) kept() int {
	return d.sent[fresh].kept + d.sent[again].kept + d.sent[reinjected].kept + d.acks.kept
}

func (d *direction) reset() {
	for i := range d.sent {
		d.sent[i].reset()
	}
	d.acks.reset()
}

// spares is how much of a kind waits to be used again.
const spares = 16

func take[T any](from *[]*T) *T {
	n := len(*from)
	if n == 0 {
		return new(T)
	}
	t := (*from)[n-1]
	*from = (*from)[:n-1]
	return t
}

func give[T any](to *[]*T, t *T) {
	if len(*to) < spares {
		*to = append(*to, t)
	}
}
