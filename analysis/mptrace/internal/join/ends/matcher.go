package ends

import (
	"slices"

	"mplab/analysis/mptrace/packet"
)

// matcher advances both captures together and matches their packets.
type matcher struct {
	clock  line
	slack  int64 // ns by which an arrival may precede its sending
	window int64
	flows  *flows
	rules  func(iface int32) *[2]rules
	queue  queue[unit] // arrivals that wait until slack has passed
	swept  int64

	// packet is called before a packet is processed; it may be nil. flow is nil
	// for packets that are not between the two ends.
	packet func(end int, p *packet.Packet, f *flow, dir uint8)
	// tick is called at intervals of half a window; nil: none.
	tick func(now int64)
	// end is called for each flow that has ended.
	end func(*flow)
}

// idle is the time after which flows without packets are ended if there are
// many flows.
const idle = 60e9

func (m *matcher) run(in [2]stream) {
	var heads [2]*packet.Packet
	var times [2]int64
	advance := func(end int) {
		if heads[end] = in[end].next(); heads[end] != nil {
			times[end] = m.phoneTime(end, heads[end].TimeNS)
		}
	}
	advance(phoneEnd)
	advance(proxyEnd)
	for heads[phoneEnd] != nil || heads[proxyEnd] != nil {
		end := phoneEnd
		if heads[phoneEnd] == nil || heads[proxyEnd] != nil && times[proxyEnd] < times[phoneEnd] {
			end = proxyEnd
		}
		m.arrivals(times[end] - m.slack)
		m.take(end, heads[end], times[end])
		advance(end)
	}
	const ever = 1 << 62
	m.arrivals(ever)
	m.flows.sweep(ever, m.finish)
}

// phoneTime converts a time of an end's clock to the phone's clock.
func (m *matcher) phoneTime(end int, timeNS int64) int64 {
	if end == phoneEnd {
		return timeNS
	}
	return m.clock.phone(timeNS)
}

func (m *matcher) take(end int, p *packet.Packet, now int64) {
	f, dir := m.flows.find(end, p, now)
	if m.packet != nil {
		m.packet(end, p, f, dir)
	}
	if now > m.swept+m.window/2 {
		m.sweep(now)
	}
	if f == nil {
		return
	}
	if f.rules == nil && f.iface >= 0 {
		f.rules = m.rules(f.iface)
	}
	u := unitOf(p, f, dir, now)
	if int(dir) == end {
		d := &f.dirs[dir]
		d.send(&u, m.of(f, dir))
		if now > d.checked+m.window/64 {
			d.settle(now-m.slack, m.of(f, dir))
		}
		return
	}
	if p.Flags&packet.SYN != 0 && p.Has&packet.HasMSS != 0 {
		f.dirs[end].mss = p.MSS() // this end obeys the MSS that it received
	}
	m.queue.push(u)
}

// of returns the rules of a direction. If the phone has not seen the flow yet,
// it returns the rules of the unknown path.
func (m *matcher) of(f *flow, dir uint8) *rules {
	if f.rules != nil {
		return &f.rules[dir]
	}
	return &m.rules(-1)[dir]
}

// arrivals matches the packets that arrived up to a time.
func (m *matcher) arrivals(until int64) {
	for u := m.queue.first(); u != nil && u.timeNS <= until; u = m.queue.first() {
		u.flow.dirs[u.dir].arrive(u, m.of(u.flow, u.dir))
		m.queue.pop()
	}
}

// sweep settles old transmissions in all flows.
func (m *matcher) sweep(now int64) {
	m.swept = now
	for _, f := range m.flows.all {
		for dir := range f.dirs {
			f.dirs[dir].settle(now-m.slack, m.of(f, uint8(dir)))
		}
	}
	if len(m.flows.all) > m.flows.most/2 {
		m.flows.sweep(now-idle-m.window, m.finish)
	}
	if m.tick != nil {
		m.tick(now)
	}
}

func (m *matcher) finish(f *flow) {
	const ever = 1 << 62
	for dir := range f.dirs {
		f.dirs[dir].settle(ever, m.of(f, uint8(dir)))
	}
	if m.end != nil {
		m.end(f)
	}
}

// queue is a first-in, first-out queue.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) push(item T) { q.items = append(q.items, item) }

func (q *queue[T]) first() *T {
	if q.head == len(q.items) {
		return nil
	}
	return &q.items[q.head]
}

func (q *queue[T]) pop() {
	if q.head++; q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	} else if q.head >= 1<<12 && q.head > len(q.items)/2 {
		q.items = slices.Delete(q.items, 0, q.head)
		q.head = 0
	}
}
