package session

import (
	"slices"

	"mplab/mpflex/frame"
	"mplab/mpflex/sched"
)

// Datagram is one that a session carries, without any promise but that it never
// comes twice.
type Datagram struct {
	Association uint32
	Label       byte // of the scheme by which the other side is to send what comes back
	Payload     []byte
}

// mostDatagrams bounds how many of a scheme wait, and how many copies on a
// path, mostWaiting the bytes of those of a scheme: later ones are dropped, as
// on any full link.
const (
	mostDatagrams = 1024
	mostWaiting   = 4 << 20
)

// OnDatagram sets who takes received datagrams. It is called by the reader of
// a path and must not block; the payload is valid during the call.
func (s *Session) OnDatagram(take func(Datagram)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.datagram = take
}

// SendDatagram sends a datagram by a scheme, nil for the session's own. It says
// whether the datagram waits to be sent: not without a path that the scheme
// allows, and not when too many wait.
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
	if len(g.datagrams) >= mostDatagrams || !slices.ContainsFunc(s.paths, g.allows) {
		return false
	}
	waiting := len(d.Payload)
	for i := range g.datagrams {
		waiting += len(g.datagrams[i].Payload)
	}
	if waiting > mostWaiting {
		return false
	}
	d.Payload = slices.Clone(d.Payload)
	g.datagrams = append(g.datagrams, d)
	s.wake()
	return true
}

// allows says whether a path may carry what has the scheme of the group.
func (g *group) allows(p *Path) bool {
	allowed, _ := g.scheme.use(p)
	return allowed
}

// hasDatagrams says whether some wait for their schemes.
func (s *Session) hasDatagrams() bool {
	return slices.ContainsFunc(s.groups, func(g *group) bool { return len(g.datagrams) > 0 })
}

// dropDatagrams drops those that no path that is left may carry.
func (s *Session) dropDatagrams() {
	for _, g := range s.groups {
		if !slices.ContainsFunc(s.paths, g.allows) {
			g.datagrams, g.bearers = nil, nil
		}
	}
}

// numbered is a datagram that goes over several paths, with its number.
type numbered struct {
	Datagram
	number uint32
}

// fillDatagram takes one datagram, when a scheduler gives the path one.
func (s *Session) fillDatagram(p *Path, b *batch) bool {
	if len(p.copies) > 0 {
		d := p.copies[0]
		p.copies = p.copies[1:]
		s.totals.DatagramCopies++
		s.putDatagram(p, b, d.Datagram, d.number, frame.Again)
		return true
	}
	for i := range s.groups {
		g := s.groups[(s.datagramTurn+i)%len(s.groups)]
		if len(g.datagrams) == 0 {
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
		d := g.datagrams[0]
		g.datagrams = g.datagrams[1:]
		s.datagramTurn = (s.datagramTurn + i + 1) % len(s.groups)
		s.totals.DatagramsOut++
		var number uint32
		var flags frame.Flags
		if len(bearers) > 1 {
			number, flags = s.datagramNumber, frame.Again
			s.datagramNumber++
			for _, q := range bearers {
				if q != p && len(q.copies) < mostDatagrams {
					q.copies = append(q.copies, numbered{d, number})
					if q.idle {
						q.work.Signal()
					}
				}
			}
		}
		g.bearers = g.bearers[:0]
		s.putDatagram(p, b, d, number, flags)
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
	message := sched.Message{Size: frame.HeaderSize + len(g.datagrams[0].Payload)}
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
