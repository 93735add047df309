package sequence

import (
	"mplab/analysis/mptrace/internal/mptcp"
	"mplab/analysis/mptrace/internal/observe"
	"mplab/analysis/mptrace/tables"
)

// DefaultSamples is the minimum number of points that a direction keeps per
// kind before every second one is dropped.
const DefaultSamples = 1000

// A connection is small if neither direction has Small bytes of new data. With
// many small connections, most rows would be points, so points of small
// connections are written only up to SmallRows rows.
const (
	Small     = 100_000
	SmallRows = 100_000
)

// Observer keeps the points of each direction while its connection lives, and
// writes them when it ends: first the direction up, then down, each in the
// order of time.
type Observer struct {
	observe.None
	out     *tables.Stream[tables.Point]
	all     bool // also write all small connections
	rows    int  // of small connections
	budget  budget
	pool    pool
	conns   observe.States[connection]
	spare   []*connection
	spares  []*direction
	sources []source
}

// connection is the state of a connection. It stores calls, or points if the
// connection is not small or has many calls.
type connection struct {
	calls calls
	large bool      // has points instead of calls
	begun [2]bool   // there was data
	bytes [2]uint64 // new data
	acked [2]uint64 // number of the last acknowledgement
	edge  [2]uint64 // right edge of its window
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

// New returns an observer that writes into a stream. A direction keeps at most
// 2·samples points of each kind. 0 means [DefaultSamples], −1 keeps all points,
// also of small connections.
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

// Interest implements [mptcp.Choosy]: points need neither mappings nor repeated
// acknowledgements.
func (*Observer) Interest() mptcp.Interest { return 0 }

// Data adds sent data.
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

// Ack adds an acknowledgement. It ignores repetitions.
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

// later stores a call. If the connection is no longer small or the call cannot
// be stored, it converts all stored calls into points and returns false.
func (o *Observer) later(c *connection, timeNS int64, what, dir uint8, at, size uint64, sub int32) bool {
	if c.bytes[dir] < Small && !o.all && o.pool.add(&c.calls, timeNS, what, dir, at, size, sub) {
		return true
	}
	o.enlarge(c)
	return false
}

// enlarge converts the stored calls into points.
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

// write writes the points of a connection and returns the number of rows.
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

// recycle keeps the memory of a connection for reuse.
func (o *Observer) recycle(c *connection) {
	o.pool.drop(&c.calls)
	for _, d := range c.dirs {
		if d != nil {
			o.budget.kept -= d.kept()
			if !o.all { // with all points kept, their memory may be large
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

// spares is the maximum length of a free list.
const spares = 256

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
