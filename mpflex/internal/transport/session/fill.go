package session

import (
	"net"
	"slices"

	"mplab/mpflex/internal/transport/frame"
	"mplab/mpflex/internal/transport/sched"
)

// batch is the data of one write to a path.
type batch struct {
	headers []byte
	bytes   net.Buffers
	left    net.Buffers // unwritten part of bytes during a write
	held    []*block
	record  []byte // plaintext of the next TLS record
	size    int
	entries int  // messages of the batch: the last ones of the path's list
	payload bool // it contains a message or a datagram
}

const (
	batchSize   = 256 << 10
	batchFrames = 64
)

func (b *batch) reset() {
	b.headers, b.bytes, b.held, b.size, b.entries = b.headers[:0], b.bytes[:0], b.held[:0], 0, 0
	if b.headers == nil {
		b.headers = make([]byte, 0, batchFrames*frame.HeaderSize) // never grows: bytes points into it
	}
}

// drop releases the memory that the batch held. The session must be locked.
func (b *batch) drop() {
	for _, block := range b.held {
		block.drop()
	}
	clear(b.bytes)
	b.held = b.held[:0]
}

// full reports whether the batch takes no further message.
func (b *batch) full() bool {
	return b.size >= batchSize || len(b.headers)+2*frame.HeaderSize > cap(b.headers)
}

// send writes a batch and returns the number of bytes written. With TLS it returns 0:
// the path's Counter has the number.
func (p *Path) send(b *batch) (int, error) {
	if p.link.Counter == nil {
		b.left = b.bytes
		n, err := b.left.WriteTo(p.conn)
		return int(n), err
	}
	return 0, b.encrypt(p.conn, p.link.Counter)
}

// recordSize is the payload of a full TLS record (RFC 8446 §5.1).
const recordSize = 16 << 10

// encrypt writes a batch to TLS in full records, and passes the records to TCP
// together.
func (b *batch) encrypt(conn net.Conn, counter *Counter) error {
	if b.record == nil {
		b.record = make([]byte, 0, recordSize)
	}
	counter.gather()
	b.record = b.record[:0]
	for _, bytes := range b.bytes {
		for len(bytes) > 0 {
			n := min(len(bytes), recordSize-len(b.record))
			b.record, bytes = append(b.record, bytes[:n]...), bytes[n:]
			if len(b.record) < recordSize {
				continue
			}
			if _, err := conn.Write(b.record); err != nil {
				return err
			}
			b.record = b.record[:0]
		}
	}
	if len(b.record) > 0 {
		if _, err := conn.Write(b.record); err != nil {
			return err
		}
	}
	return counter.flush()
}

// fill makes the next batch of a path. It returns false if there is nothing to send
// now. The path must have room, and the session must be locked.
func (s *Session) fill(p *Path, b *batch) bool {
	b.reset()
	s.fillControl(p, b)
	control := b.size
	for p.room > 0 && !b.full() && s.fillNext(p, b) {
	}
	b.payload = b.size > control
	return b.size > 0
}

// fillNext adds one datagram or one message of a stream. While both wait, each gets
// half of the path's bytes (deficit round robin). Otherwise datagrams go first.
func (s *Session) fillNext(p *Path, b *batch) bool {
	size := b.size
	if p.ahead <= 0 || len(p.copies) == 0 && !s.hasDatagrams() {
		if s.fillDatagram(p, b) {
			p.ahead += b.size - size
			return true
		}
		p.ahead = 0
	}
	if s.fillLost(p, b) || s.fillLate(p, b) || s.fillData(p, b) || s.fillTail(p, b) {
		p.ahead -= b.size - size
		return true
	}
	p.ahead = 0
	return s.fillDatagram(p, b)
}

// fillControl adds control frames: those of the path, and those of the session if the
// path leads.
func (s *Session) fillControl(p *Path, b *batch) {
	c := p.control
	p.control = nil
	if s.hasControl() && s.leads(p) {
		c = s.appendControl(c)
	}
	if len(c) == 0 {
		return
	}
	b.bytes = append(b.bytes, c)
	b.size += len(c)
	p.room -= len(c)
	p.stats.ControlOut += int64(len(c))
	p.stats.Framed += uint64(len(c))
}

func (s *Session) hasControl() bool {
	return len(s.control.list) > 0 || len(s.ends) > 0
}

// leads reports whether the path is the one for control frames: the one with the lowest
// RTT that is neither stalled nor blocked. If another path leads, leads wakes it.
func (s *Session) leads(p *Path) bool {
	best := p
	for _, q := range s.paths {
		if q.stalled || q.blocked {
			continue
		}
		if best.stalled || q.minRTT < best.minRTT {
			best = q
		}
	}
	if best != p && best.idle {
		best.work.Signal()
	}
	return best == p
}

// appendControl appends the control frames of the session that are due.
func (s *Session) appendControl(c []byte) []byte {
	const most = 16 << 10
	for len(s.ends) > 0 {
		c = s.ends[0].append(c)
		s.ends = s.ends[1:]
	}
	n := 0
	for ; n < len(s.control.list) && len(c) < most; n++ {
		c = s.control.list[n].appendControl(c)
	}
	s.control.list = s.control.list[:copy(s.control.list, s.control.list[n:])]
	return c
}

// fillData adds one message of a stream if a scheduler chooses the path for it.
func (s *Session) fillData(p *Path, b *batch) bool {
	for i := range s.groups {
		g := s.groups[(s.turn+i)%len(s.groups)]
		st := g.next()
		if st == nil {
			continue
		}
		chosen := s.choose(g, st)
		if !slices.Contains(chosen, p) {
			for _, q := range chosen {
				if q.idle {
					q.work.Signal()
				}
			}
			continue
		}
		size := min(int(st.sendable()), p.message(st))
		for _, q := range chosen {
			if q != p {
				s.duplicate(q, st, size)
			}
		}
		s.place(p, b, st, size)
		g.placed(st)
		s.turn = (s.turn + i + 1) % len(s.groups)
		return true
	}
	return false
}

// choose returns the paths for the next message of a stream, or none if it must wait. A
// choice stays valid until it is used or one of its paths is not ready. Otherwise two
// paths that ask in turn could each be referred to the other.
func (s *Session) choose(g *group, st *Stream) []*Path {
	if len(g.chosen) > 0 && !slices.ContainsFunc(g.chosen, func(p *Path) bool { return p.stalled || !p.ready() }) {
		return g.chosen
	}
	views, paths := s.candidates(g.scheme)
	size := int(st.sendable())
	for _, p := range paths {
		size = min(size, p.message(st))
	}
	message := sched.Message{Size: size, Left: int(st.out.end-st.next) - size, Sent: st.next, Waiting: s.unsent - size}
	g.chosen = readyOf(paths, g.scheme.Scheduler.Place(message, views), g.chosen[:0])
	return g.chosen
}

// candidates returns the paths that a scheme allows, and their views for the scheduler.
// Both are valid until the next call.
func (s *Session) candidates(scheme *Scheme) ([]sched.Path, []*Path) {
	s.views, s.scratch = s.views[:0], s.scratch[:0]
	for _, p := range s.paths {
		if allowed, backup := scheme.use(p); allowed {
			s.views, s.scratch = append(s.views, p.view(backup)), append(s.scratch, p)
		}
	}
	return s.views, s.scratch
}

// use reports whether a scheme allows a path, and whether the path is a backup in it.
func (c *Scheme) use(p *Path) (allowed, backup bool) {
	if c.Paths == nil {
		return true, p.link.Backup
	}
	return c.Paths(p.link.Name)
}

// readyOf appends the paths that a scheduler named and that are ready.
func readyOf(paths []*Path, named sched.Paths, to []*Path) []*Path {
	for i, p := range paths {
		if named.Has(i) && p.ready() {
			to = append(to, p)
		}
	}
	return to
}

// ready reports whether the path takes a message now.
func (p *Path) ready() bool { return p.state == up && !p.blocked && p.room > 0 }

// place adds the next size bytes of a stream to a batch, and the end of the stream if
// it follows them.
func (s *Session) place(p *Path, b *batch, st *Stream, size int) {
	flags := frame.Flags(0)
	lo := st.next
	st.next += uint64(size)
	s.unsent -= size
	if st.finished && st.next == st.out.end {
		st.finSent = true
		flags = frame.Fin
	}
	s.put(p, b, st, lo, size, flags)
	s.copyBudget = min(s.copyBudget+float64(size)*s.config.Reinjection.Share, copyBudgetMost)
	st.offer()
}

// put appends a message to a batch and to the path's list of sent messages.
func (s *Session) put(p *Path, b *batch, st *Stream, lo uint64, size int, flags frame.Flags) {
	at := len(b.headers)
	b.headers = frame.Header{Type: frame.Data, Flags: flags, Size: uint16(size), Stream: st.id, Seq: uint32(lo)}.Append(b.headers)
	b.bytes = append(b.bytes, b.headers[at:])
	b.bytes, b.held = st.out.slices(lo, lo+uint64(size), b.bytes, b.held)
	total := frame.HeaderSize + size
	b.size += total
	b.entries++
	p.room -= total
	p.pending += total
	p.stats.Framed += uint64(total)
	p.stats.MessagesOut++
	p.stats.BytesOut += int64(size)
	if flags&frame.Again != 0 {
		st.stats.carried(p).Copies += int64(size)
	} else {
		st.stats.carried(p).Out += int64(size)
	}
	st.movedNS = s.nowNS()
	p.copied -= p.sent.push(entry{
		st: st, lo: lo, size: uint32(size), end: p.written + uint64(b.size), framed: p.stats.Framed, timeNS: st.movedNS,
		again: flags&frame.Again != 0, fin: flags&frame.Fin != 0,
	})
}

// entry is a message that was sent on a path.
type entry struct {
	st     *Stream
	lo     uint64
	end    uint64 // byte count written to TCP up to its end
	framed uint64 // bytes of the path's frames up to its end
	timeNS int64
	size   uint32
	fin    bool
	again  bool // a copy, or already copied: not copied again
}

// arrived reports whether the other side has the message or no longer needs it.
func (e *entry) arrived() bool {
	upTo := e.lo + uint64(e.size)
	if e.fin {
		upTo++
	}
	return e.st.reset != nil || e.st.acked >= upTo
}

// entries holds the messages that were sent on a path and may not have arrived, in
// order of sending.
type entries struct {
	list  []entry
	acked int // the first ones of list that the other side's TCP has acknowledged
}

// push appends a message. It returns the number of arrived messages that it removed.
func (q *entries) push(e entry) (forgotten int) {
	if len(q.list) == cap(q.list) {
		forgotten = q.tidy()
	}
	q.list = append(q.list, e)
	return forgotten
}

// tidy removes the messages that have arrived from the head and returns their number.
func (q *entries) tidy() int {
	n := 0
	for n < q.acked && q.list[n].arrived() {
		n++
	}
	if n > 0 {
		rest := copy(q.list, q.list[n:])
		clear(q.list[rest:])
		q.list = q.list[:rest]
		q.acked -= n
	}
	return n
}

// delivered updates acked: the other side's TCP has acknowledged the bytes below upTo.
func (q *entries) delivered(upTo uint64) {
	for q.acked < len(q.list) && q.list[q.acked].end <= upTo {
		q.acked++
	}
}

// flying returns the messages that TCP has not delivered.
func (q *entries) flying() []entry { return q.list[q.acked:] }
