package session

import (
	"slices"
	"time"

	"mplab/mpflex/internal/transport/frame"
	"mplab/mpflex/internal/transport/sched"
)

// Datagram is one that a session carries, without any promise but that it never
// comes twice.
type Datagram struct {
	Association uint32
	Label       byte // of the scheme by which the other side is to send what comes back
	Payload     []byte
}

const (
	// mostWaiting bounds the memory of the datagrams of a session that wait to be
	// sent, in bytes. The oldest one is dropped for a new one.
	mostWaiting = 4 << 20
	// datagramCost is the memory of a waiting datagram beside its bytes.
	datagramCost = 256
	// datagramAge is how long a datagram waits to be sent while others of its
	// association wait behind it. Older ones are dropped, so that no queue lasts.
	datagramAge = 100 * time.Millisecond
	// datagramAgeMost is the same for the last one of its association.
	datagramAgeMost = time.Second
)

// queued is a datagram that waits.
type queued struct {
	Datagram
	number  uint32 // of a copy
	sinceNS int64
}

// cost returns the memory that a waiting datagram takes.
func (d *queued) cost() int64 { return int64(len(d.Payload)) + datagramCost }

// flow are the waiting datagrams of an association, never none. The flows of a
// group take turns.
type flow struct {
	association uint32
	list        []queued
}

// OnDatagram sets who takes received datagrams. It is called by the reader of
// a path and must not block; the payload is valid during the call.
func (s *Session) OnDatagram(take func(Datagram)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.datagram = take
}

// SendDatagram sends a datagram by a scheme, nil for the session's own. It says
// whether the datagram waits to be sent: not without a path that the scheme
// allows. Datagrams that wait may be dropped later, see Counters.
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

// keepDatagram charges the memory of a waiting datagram; a negative number gives
// it back.
func (s *Session) keepDatagram(cost int64) {
	s.waiting += cost
	s.add(cost)
}

// mayHold returns how much memory the waiting datagrams of the session may take.
func (s *Session) mayHold() int64 { return min(mostWaiting, s.config.Account.data()/8) }

// makeRoom drops the oldest datagrams until another one may wait.
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

// takeDatagram takes the first datagram of a flow out.
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

// stale says whether the first datagram of a list has waited for too long.
func (s *Session) stale(list []queued) bool {
	age := time.Duration(s.nowNS() - list[0].sinceNS)
	return age > s.datagramAge && len(list) > 1 || age > datagramAgeMost/datagramAge*s.datagramAge
}

// expire drops stale datagrams of the flow whose turn it is, and of those after
// it when nothing of it is left.
func (g *group) expire(s *Session) {
	for len(g.flows) > 0 && s.stale(g.flows[0].list) {
		g.takeDatagram(s, 0)
		s.totals.DatagramsDropped++
	}
}

// allows says whether a path may carry what has the scheme of the group.
func (g *group) allows(p *Path) bool {
	allowed, _ := g.scheme.use(p)
	return allowed
}

// hasDatagrams says whether some wait for their schemes.
func (s *Session) hasDatagrams() bool {
	return slices.ContainsFunc(s.groups, func(g *group) bool { return len(g.flows) > 0 })
}

// dropDatagrams drops those that no path that is left may carry, all when the
// session is over.
func (s *Session) dropDatagrams() {
	for _, g := range s.groups {
		for len(g.flows) > 0 && !slices.ContainsFunc(s.paths, g.allows) {
			g.takeDatagram(s, 0)
			s.totals.DatagramsDropped++
		}
	}
}

// dropCopies drops the datagrams that wait for a path.
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

// fillDatagram takes one datagram, when a scheduler gives the path one.
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

// bear returns the paths that are to carry the first datagram of a group, none
// when it is to wait. As with messages of streams a choice holds until it is
// carried out, or cannot be any more.
func (s *Session) bear(g *group) []*Path {
	if len(g.bearers) > 0 && !slices.ContainsFunc(g.bearers, func(p *Path) bool { return p.stalled || !p.ready() }) {
		return g.bearers
	}
	views, paths := s.candidates(g.scheme)
	message := sched.Message{Size: frame.HeaderSize + len(g.flows[0].list[0].Payload)}
	g.bearers = readyOf(paths, g.scheme.Scheduler.Place(message, views), g.bearers[:0])
	return g.bearers
}

// putDatagram puts a datagram into a batch.
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

// takeDatagram takes note of a datagram, and says whether it is to be delivered:
// not when a copy of it was.
func (s *Session) takeDatagram(p *Path, h frame.Header) bool {
	p.stats.DatagramsIn++
	if _, number := frame.SplitDatagramSeq(h.Seq); h.Flags&frame.Again != 0 && !s.datagramsSeen.add(number) {
		s.totals.DatagramDuplicates++
		return false
	}
	s.totals.DatagramsIn++
	return true
}

// numbers are those of datagrams that came, as far as they are not numbersKept
// or more behind the highest. Of each come the low 24 bits.
type numbers struct {
	next int64    // behind the highest
	seen []uint64 // a bit each, as a ring
}

// numbersKept is so many that what is further behind was under way for seconds,
// at any rate of a radio link.
const numbersKept = 1 << 16

// add says whether a number is new. One that is too far behind counts as known.
func (n *numbers) add(low uint32) bool {
	const half = 1 << 23
	if n.seen == nil {
		n.seen = make([]uint64, numbersKept/64)
	}
	number := n.next + (int64(low)-n.next+half)&(2*half-1) - half
	if number < 0 || number < n.next-numbersKept {
		return false
	}
	if number >= n.next+numbersKept { // none of those that came is kept
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
