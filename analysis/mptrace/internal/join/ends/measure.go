package ends

import (
	"cmp"
	"slices"

	"mplab/analysis/mptrace/internal/mptcp"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// following creates the follower of an end.
type following func(o Options, interfaces func(int32) string, observer mptcp.Observer) follower

// measure is the third pass; it fills in the result.
type measure struct {
	matcher   *matcher
	options   Options
	result    *Result
	known     *acquaintance
	complete  bool // the sketches hold every SYN
	paths     map[int32]*[2]rules
	conns     []*connection
	observers [2]*observer
	followers [2]follower
	names     func(int32) string
}

func newMeasure(o Options, known *acquaintance, sketches [2]*sketch, clock line, t *timing, r *Result) *measure {
	phone, proxy := sketches[phoneEnd], sketches[proxyEnd]
	width := float64(phone.last - phone.first)
	m := &measure{options: o, result: r, known: known, complete: phone.syns.limit == ^uint64(0), paths: map[int32]*[2]rules{}}
	slack := slackOf(Clock{Known: r.Clock.Known, DriftKnown: r.Clock.DriftKnown}, fineSlack, width)
	begin := [2]int64{clock.phone(proxy.first), phone.first} // of the receiver's capture, per direction
	end := [2]int64{clock.phone(proxy.last), phone.last}
	r.Summary.FromNS, r.Summary.ToNS = max(begin[Up], begin[Down]), min(end[Up], end[Down])
	m.matcher = &matcher{
		clock: clock, slack: slack, window: o.WindowNS, flows: newFlows(known, o.MaxFlows),
		rules: func(iface int32) *[2]rules {
			if m.paths[iface] == nil {
				both := makeRules(o, known, iface, m, slack)
				for dir := range both {
					both[dir].fastest, both[dir].begin, both[dir].end = t.fastest(iface, dir, clock), begin[dir], end[dir]
				}
				m.paths[iface] = &both
			}
			return m.paths[iface]
		},
		packet: m.follow, tick: m.tick, end: m.ended,
	}
	return m
}

func (m *measure) pass(open [2]opener, with following) {
	var in [2]stream
	for end := range open {
		in[end] = open[end]()
		defer in[end].close()
		m.observers[end] = newObserver(end, m)
		m.followers[end] = with(m.options, in[end].iface, m.observers[end])
	}
	m.names = in[phoneEnd].iface
	m.matcher.run(in)
	for _, f := range m.followers {
		f.close()
	}
	m.rows()
}

// follow passes a packet to the engine of its end. The phone's engine gets all
// packets, so that its connection numbers match the phone's tables.
func (m *measure) follow(end int, p *packet.Packet, f *flow, dir uint8) {
	if f == nil && end == proxyEnd {
		return
	}
	o := m.observers[end]
	o.now, o.dir, o.packet = f, dir, p
	m.followers[end].add(p)
}

// delay, lose and loseAck implement judge.
func (m *measure) delay(d *direction, sentNS, arrivedNS int64) {
	if d.count.delays == nil {
		d.count.delays = &delays{shortest: m.matcher.of(d.flow, d.dir).fastest}
		d.count.delays.over.Limit = int32(m.options.Samples)
	}
	d.count.slowest = max(d.count.slowest, arrivedNS-sentNS)
	d.count.delays.add(sentNS, arrivedNS-sentNS)
}

func (m *measure) lose(d *direction, t *transmission, lo, hi uint64) {
	payload := int64(hi-lo) - int64(t.size()-t.payload) // without SYN and FIN
	if hi < t.hi {
		payload = int64(hi - lo)
	}
	d.losses = append(d.losses, Loss{
		TimeNS: t.sentNS, Seq: d.relative(lo), Bytes: max(payload, 0),
		Packets: int32(t.between(lo, hi)), Retransmission: t.flags&again != 0, Ambiguous: t.group != nil,
	})
}

func (m *measure) loseAck(d *direction, a *ack) {
	d.losses = append(d.losses, Loss{
		TimeNS: a.sentNS, Seq: d.relative(unwrap(d.number, a.seq)), Packets: 1,
	})
}

// tick settles reinjections whose outcome is final, and connections that have
// ended.
func (m *measure) tick(now int64) {
	m.conns = slices.DeleteFunc(m.conns, func(c *connection) bool {
		m.reinjections(c, now-m.options.WindowNS)
		over := c.ended[phoneEnd] && c.ended[proxyEnd] && len(c.dirs[Up].again)+len(c.dirs[Down].again) == 0
		if over {
			m.reordering(c)
		}
		return over
	})
}

func (m *measure) reinjections(c *connection, until int64) {
	for dir := range c.dirs {
		d, n := &c.dirs[dir], 0
		for ; n < len(d.again) && d.again[n].timeNS < until; n++ {
			from, to := d.again[n].from.sub, d.again[n].to.sub
			if c.split || from == nil || to == nil {
				continue
			}
			row := Reinjection{ConnectionID: c.id, Direction: c.name(dir), FromSubflow: from.id, ToSubflow: to.id}
			d.reinjection(&d.again[n], &row)
			m.result.Reinjections = append(m.result.Reinjections, row)
		}
		d.again = slices.Delete(d.again, 0, n)
	}
}

// name returns the name of a direction in the phone's engine.
func (c *connection) name(dir int) string {
	if c.turn[phoneEnd] {
		dir = 1 - dir
	}
	return tables.Directions[dir]
}

// rows writes the remaining rows and sorts all rows.
func (m *measure) rows() {
	const ever = 1 << 62
	for _, c := range m.conns {
		m.reinjections(c, ever)
		m.reordering(c)
	}
	r := m.result
	r.Summary.Ignored = m.matcher.flows.ignored
	slices.SortStableFunc(r.PathEnds, func(a, b PathEnds) int {
		return cmp.Or(cmp.Compare(a.ConnectionID, b.ConnectionID), cmp.Compare(a.SubflowID, b.SubflowID), -cmp.Compare(a.Direction, b.Direction))
	})
	slices.SortStableFunc(r.OWD, func(a, b OWD) int {
		return cmp.Or(cmp.Compare(a.ConnectionID, b.ConnectionID), cmp.Compare(a.SubflowID, b.SubflowID), -cmp.Compare(a.Direction, b.Direction))
	})
	slices.SortStableFunc(r.Losses, func(a, b Loss) int {
		return cmp.Or(cmp.Compare(a.ConnectionID, b.ConnectionID), cmp.Compare(a.SubflowID, b.SubflowID),
			-cmp.Compare(a.Direction, b.Direction), cmp.Compare(a.TimeNS, b.TimeNS))
	})
	slices.SortStableFunc(r.Reordering, func(a, b Reordering) int {
		return cmp.Or(cmp.Compare(a.ConnectionID, b.ConnectionID), -cmp.Compare(a.Direction, b.Direction))
	})
	slices.SortStableFunc(r.Reinjections, func(a, b Reinjection) int {
		return cmp.Or(cmp.Compare(a.ConnectionID, b.ConnectionID), -cmp.Compare(a.Direction, b.Direction),
			cmp.Compare(a.TimeNS, b.TimeNS), cmp.Compare(a.Offset, b.Offset))
	})
}

func (m *measure) reordering(c *connection) {
	if c.id < 0 {
		return
	}
	for dir := range c.dirs {
		row := Reordering{ConnectionID: c.id, Direction: c.name(dir), Level: tables.LevelTCP}
		if c.mptcp {
			row.Level = tables.LevelMPTCP
		}
		if c.dirs[dir].waiting.row(&row) {
			m.result.Reordering = append(m.result.Reordering, row)
		}
	}
}

// ended adds the rows of a flow to the result if its packets could be expected
// at both ends.
func (m *measure) ended(f *flow) {
	s := &m.result.Summary
	matched := f.dirs[Up].count.arrived+f.dirs[Down].count.arrived > 0
	answered := f.dirs[Down].count.unseen > 0 // packets did arrive, but at a place that was not captured
	switch {
	case matched:
		s.Flows++
		if f.nat {
			s.FlowsNAT++
		}
	case !f.seen[phoneEnd] || f.seen[proxyEnd] || answered || f.sub == nil || len(m.known.nat) > 0 && !(f.syn && m.complete):
		s.FlowsUnmatched++
		return
	default:
		s.FlowsPhone++
	}
	if f.sub != nil && f.conn != nil {
		m.publish(f, Up)
		m.publish(f, Down)
	}
}

func (m *measure) publish(f *flow, dir int) {
	id, sub, name, c := f.conn.id, f.sub.id, f.conn.name(dir), &f.dirs[dir].count
	row := PathEnds{ConnectionID: id, SubflowID: sub, Direction: name, Interface: f.sub.iface, Network: f.sub.network, NAT: f.nat}
	if row.Interface == "" && f.iface >= 0 {
		row.Interface = m.names(f.iface)
	}
	c.row(&row)
	if row.Sent+row.NotJudged+row.Unseen > 0 {
		m.result.PathEnds = append(m.result.PathEnds, row)
	}
	if d := c.delays; d != nil {
		for i, p := range d.over.Kept() {
			m.result.OWD = append(m.result.OWD, OWD{id, sub, name, p.TimeNS, float64(p.Value+d.shortest) / 1e6, d.over.Weight(i)})
		}
	}
	for _, l := range f.dirs[dir].losses {
		l.ConnectionID, l.SubflowID, l.Direction = id, sub, name
		m.result.Losses = append(m.result.Losses, l)
	}
}
