package session

import (
	"slices"
	"time"

	"mplab/mpflex/internal/transport/frame"
	"mplab/mpflex/internal/transport/sched"
)

// Datagram is a datagram of a session. Delivery is not guaranteed, but it is never
// delivered twice.
type Datagram struct {
	Association uint32
	Label       byte // scheme by which the other side must send answers
	Payload     []byte
}

const (
	// mostWaiting bounds the memory of a session's unsent datagrams, in bytes. Beyond
	// it, the oldest one is dropped.
	mostWaiting = 4 << 20
	// datagramCost is the memory of a waiting datagram without its payload, in bytes.
	datagramCost = 256
	// datagramAge is how long a datagram may wait to be sent while others of its
	// association wait behind it. Older ones are dropped, so no queue persists.
	datagramAge = 100 * time.Millisecond
	// datagramAgeMost is the same limit for the last one of its association.
	datagramAgeMost = time.Second
)

// queued is a datagram that waits to be sent.
type queued struct {
	Datagram
	number  uint32 // only with copies on several paths
	sinceNS int64
}

// cost returns the memory of a waiting datagram, in bytes.
func (d *queued) cost() int64 { return int64(len(d.Payload)) + datagramCost }

// flow holds the waiting datagrams of an association, at least one. The flows of a
// group take turns.
type flow struct {
	association uint32
	list        []queued
}

// OnDatagram sets the function that takes received datagrams. A path's reader calls it.
// It must not block. The payload is valid only during the call.
func (s *Session) OnDatagram(take func(Datagram)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.datagram = take
}

// SendDatagram queues a datagram with a scheme; nil means the session's default. It
// returns false if no path of the scheme exists, the payload is empty or too large,
// memory is short, or the session has ended. A queued datagram may still be dropped,
// see Counters.
func (s *Session) SendDatagram(d Datagram, scheme *Scheme) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || len(d.Payload) == 0 || len(d.Payload) > frame.MaxPayload {
		return false
	}
	g := s.defaultGroup
	if scheme != nil {
		g = s.groupOf(scheme)
	}
	if !slices.ContainsFunc(s.paths, g.allows) {
		return false
	}
	one := queued{Datagram: d, sinceNS: s.nowNS()}
	if !s.makeRoom(one.cost()) {
		s.totals.DatagramsDropped++
		return false
	}
	one.Payload = slices.Clone(d.Payload)
	s.keepDatagram(one.cost())
	if i := slices.IndexFunc(g.flows, func(f *flow) bool { return f.association == d.Association }); i >= 0 {
		g.flows[i].list = append(g.flows[i].list, one)
	} else {
		g.flows = append(g.flows, &flow{d.Association, []queued{one}})
	}
	s.wake()
	return true
}

// keepDatagram charges the memory of a waiting datagram. A negative number releases it.
func (s *Session) keepDatagram(cost int64) {
	s.waiting += cost
	s.add(cost)
}

// mayHold returns how many bytes of memory the session's waiting datagrams may use.
func (s *Session) mayHold() int64 { return min(mostWaiting, s.config.Account.data()/8) }

// makeRoom drops the oldest datagrams until a new one fits. It returns false if it
// never fits.
func (s *Session) makeRoom(cost int64) bool {
	for most := s.mayHold(); s.waiting+cost > most; {
		var where *group
		turn := 0
		for _, g := range s.groups {
			for i, f := range g.flows {
				if where == nil || f.list[0].sinceNS < where.flows[turn].list[0].sinceNS {
					where, turn = g, i
				}
			}
		}
		if where == nil {
			return false
		}
		where.takeDatagram(s, turn)
		s.totals.DatagramsDropped++
	}
	return true
}

// takeDatagram removes the first datagram of a flow and returns it.
func (g *group) takeDatagram(s *Session, turn int) queued {
	f := g.flows[turn]
	d := f.list[0]
	f.list[0] = queued{}
	if f.list = f.list[1:]; len(f.list) == 0 {
		g.flows = slices.Delete(g.flows, turn, turn+1)
	}
	s.keepDatagram(-d.cost())
	return d
}

// stale reports whether the first datagram of a list has waited too long.
func (s *Session) stale(list []queued) bool {
	age := time.Duration(s.nowNS() - list[0].sinceNS)
	return age > s.datagramAge && len(list) > 1 || age > datagramAgeMost/datagramAge*s.datagramAge
}

// expire drops the stale datagrams of the flow whose turn it is. If the flow becomes
// empty, expire continues with the next one.
func (g *group) expire(s *Session) {
	for len(g.flows) > 0 && s.stale(g.flows[0].list) {
		g.takeDatagram(s, 0)
		s.totals.DatagramsDropped++
	}
}

// allows reports whether the scheme of the group allows a path.
func (g *group) allows(p *Path) bool {
	allowed, _ := g.scheme.use(p)
	return allowed
}

// hasDatagrams reports whether datagrams wait for a path.
func (s *Session) hasDatagrams() bool {
	return slices.ContainsFunc(s.groups, func(g *group) bool { return len(g.flows) > 0 })
}

// dropDatagrams drops the datagrams that no attached path may carry. When the session
// is over, these are all.
func (s *Session) dropDatagrams() {
	for _, g := range s.groups {
		for len(g.flows) > 0 && !slices.ContainsFunc(s.paths, g.allows) {
			g.takeDatagram(s, 0)
			s.totals.DatagramsDropped++
		}
	}
}

// dropCopies drops the copies that wait for a path.
func (s *Session) dropCopies(p *Path) {
	for len(p.copies) > 0 {
		s.takeCopy(p)
	}
}

func (s *Session) takeCopy(p *Path) queued {
	d := p.copies[0]
	p.copies[0] = queued{}
	p.copies = p.copies[1:]
	s.keepDatagram(-d.cost())
	return d
}

// fillDatagram adds one datagram if a scheduler chooses the path for it.
func (s *Session) fillDatagram(p *Path, b *batch) bool {
	for len(p.copies) > 0 {
		stale := s.stale(p.copies)
		if d := s.takeCopy(p); !stale {
			s.totals.DatagramCopies++
			s.putDatagram(p, b, d.Datagram, d.number, frame.Again)
			return true
		}
	}
	for i := range s.groups {
		g := s.groups[(s.datagramTurn+i)%len(s.groups)]
		if g.expire(s); len(g.flows) == 0 {
			continue
		}
		bearers := s.bear(g)
		if !slices.Contains(bearers, p) {
			for _, q := range bearers {
				if q.idle {
					q.work.Signal()
				}
			}
			continue
		}
		f := g.flows[0]
		d := g.takeDatagram(s, 0)
		if len(f.list) > 0 { // the next flow's turn
			g.flows = append(slices.Delete(g.flows, 0, 1), f)
		}
		s.datagramTurn = (s.datagramTurn + i + 1) % len(s.groups)
		s.totals.DatagramsOut++
		var flags frame.Flags
		if len(bearers) > 1 {
			d.number, flags = s.datagramNumber, frame.Again
			s.datagramNumber++
			for _, q := range bearers {
				if q != p && s.waiting+d.cost() <= s.mayHold() {
					q.copies = append(q.copies, d)
					s.keepDatagram(d.cost())
					if q.idle {
						q.work.Signal()
					}
				}
			}
		}
		g.bearers = g.bearers[:0]
		s.putDatagram(p, b, d.Datagram, d.number, flags)
		return true
	}
	return false
}

// bear returns the paths for the first datagram of a group, or none if it must wait. As
// in choose, a choice stays valid until it is used or one of its paths is not ready.
func (s *Session) bear(g *group) []*Path {
	if len(g.bearers) > 0 && !slices.ContainsFunc(g.bearers, func(p *Path) bool { return p.stalled || !p.ready() }) {
		return g.bearers
	}
	views, paths := s.candidates(g.scheme)
	message := sched.Message{Size: frame.HeaderSize + len(g.flows[0].list[0].Payload)}
	g.bearers = readyOf(paths, g.scheme.Scheduler.Place(message, views), g.bearers[:0])
	return g.bearers
}

// putDatagram adds a datagram to a batch.
func (s *Session) putDatagram(p *Path, b *batch, d Datagram, number uint32, flags frame.Flags) {
	at := len(b.headers)
	b.headers = frame.Header{
		Type: frame.Datagram, Flags: flags, Size: uint16(len(d.Payload)), Stream: d.Association, Seq: frame.DatagramSeq(d.Label, number),
	}.Append(b.headers)
	b.bytes = append(b.bytes, b.headers[at:], d.Payload)
	total := frame.HeaderSize + len(d.Payload)
	b.size += total
	p.room -= total
	p.pending += total
	p.stats.Framed += uint64(total)
	p.stats.DatagramsOut++
}

// takeDatagram counts a received datagram. It reports whether to deliver it: not if a
// copy of it was delivered.
func (s *Session) takeDatagram(p *Path, h frame.Header) bool {
	p.stats.DatagramsIn++
	if _, number := frame.SplitDatagramSeq(h.Seq); h.Flags&frame.Again != 0 && !s.datagramsSeen.add(number) {
		s.totals.DatagramDuplicates++
		return false
	}
	s.totals.DatagramsIn++
	return true
}

// numbers is the set of received datagram numbers, except those numbersKept or more
// behind the highest. The wire has the low 24 bits of a number.
type numbers struct {
	next int64    // highest number + 1
	seen []uint64 // ring, one bit per number
}

// numbersKept is so large that a datagram further behind must have been in flight for
// seconds, at any rate of a radio link.
const numbersKept = 1 << 16

// add reports whether a number is new. A number too far behind counts as known.
func (n *numbers) add(low uint32) bool {
	const half = 1 << 23
	if n.seen == nil {
		n.seen = make([]uint64, numbersKept/64)
	}
	number := n.next + (int64(low)-n.next+half)&(2*half-1) - half
	if number < 0 || number < n.next-numbersKept {
		return false
	}
	if number >= n.next+numbersKept { // no number of the ring is near enough
		clear(n.seen)
		n.next = number
	}
	for ; n.next <= number; n.next++ {
		n.seen[n.next%numbersKept/64] &^= 1 << (n.next % 64)
	}
	word, bit := &n.seen[number%numbersKept/64], uint64(1)<<(number%64)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}
