package session

import (
	"time"

	"mplab/mpflex/internal/transport/frame"
	"mplab/mpflex/internal/transport/sched"
)

// copyBudgetMost bounds the tail copies that may be made in a burst, in bytes.
const copyBudgetMost = 256 << 10

// tailMargin is the minimum gain for which a tail copy is made.
const tailMargin = 5 * time.Millisecond

// duplicate queues a copy of the message that is being placed on another path for q.
func (s *Session) duplicate(q *Path, st *Stream, size int) {
	q.twins = append(q.twins, entry{st: st, lo: st.next, size: uint32(size), fin: st.finished && st.next+uint64(size) == st.out.end})
	if q.idle {
		q.work.Signal()
	}
}

// fillLate adds an urgent copy: one that a scheduler requested, of a message on a
// stalled path, or of the message that a full receive buffer waits for.
func (s *Session) fillLate(p *Path, b *batch) bool {
	for len(p.twins) > 0 {
		e := p.twins[0]
		p.twins = p.twins[1:]
		if !e.arrived() && e.lo >= e.st.out.base {
			s.totals.CopiedRedundant += int64(e.size)
			s.repeat(p, b, &e)
			return true
		}
	}
	return s.copyFrom(p, b, s.late)
}

// fillTail adds a copy of the last message of a stream if it would arrive earlier.
func (s *Session) fillTail(p *Path, b *batch) bool {
	if s.config.Reinjection.NoTail || s.copyBudget <= 0 {
		return false
	}
	return s.copyFrom(p, b, s.tail)
}

// copyFrom adds a copy of a message that find returns for another path.
func (s *Session) copyFrom(p *Path, b *batch, find func(flying []entry, from, to *Path) *entry) bool {
	if p.stalled {
		return false
	}
	for _, q := range s.paths {
		flying := q.sent.flying()
		if q == p || len(flying) == 0 {
			continue
		}
		if e := find(flying, q, p); e != nil {
			e.again = true
			s.repeat(p, b, e)
			return true
		}
	}
	return false
}

// late finds the first message on a stalled path that is not copied, or the one that a
// full receive buffer waits for.
func (s *Session) late(flying []entry, from, to *Path) *entry {
	r := &s.config.Reinjection
	if from.stalled {
		for from.copied = max(from.copied, from.sent.acked); from.copied < len(from.sent.list) && !r.NoStall; from.copied++ {
			if e := &from.sent.list[from.copied]; !e.again && !e.arrived() && s.allowed(e.st, to) {
				s.totals.CopiedStall += int64(e.size)
				return e
			}
		}
		return nil
	}
	if e := &flying[0]; !r.NoBuffer && !e.again && !e.arrived() && s.allowed(e.st, to) && s.holdsUp(e) {
		s.totals.CopiedBuffer += int64(e.size)
		return e
	}
	return nil
}

// tail finds the last message on a path, if its stream has no unsent bytes and the
// message would arrive earlier on the other path.
func (s *Session) tail(flying []entry, from, to *Path) *entry {
	for i := len(flying) - 1; i >= 0; i-- {
		e := &flying[i]
		if e.again || e.arrived() {
			continue
		}
		if e.st.next != e.st.out.end || !s.allowed(e.st, to) || !s.faster(e, from, to) {
			return nil
		}
		s.copyBudget -= float64(e.size)
		s.totals.CopiedTail += int64(e.size)
		return e
	}
	return nil
}

// allowed reports whether a stream may use a path, also for copies.
func (s *Session) allowed(st *Stream, p *Path) bool {
	scheme := st.group.scheme
	if ok, _ := scheme.use(p); !ok {
		return false
	}
	_, pinned := scheme.Scheduler.(sched.Pinned)
	return !pinned || s.pinnedTo(scheme) == p
}

// pinnedTo returns the path of a pinned scheme's streams, or nil.
func (s *Session) pinnedTo(scheme *Scheme) *Path {
	views, paths := s.candidates(scheme)
	where := scheme.Scheduler.Place(sched.Message{}, views)
	for i, p := range paths {
		if where.Has(i) {
			return p
		}
	}
	return nil
}

// holdsUp reports whether the bytes that the receiver holds behind a message nearly fill
// its window (nikravesh2016 §4.4). The bytes sent behind the message are the
// estimate.
func (s *Session) holdsUp(e *entry) bool {
	return float64(e.st.next-e.lo) >= s.config.Reinjection.Eta*float64(s.config.Window)
}

// faster reports whether a message in flight on q would arrive earlier if it were sent
// on p now.
func (s *Session) faster(e *entry, q, p *Path) bool {
	flown := time.Duration(s.nowNS() - e.timeNS)
	left := q.info.RTT - flown
	if q.rate.best > 0 {
		ahead := time.Duration(float64(e.end-q.delivery) / q.rate.best * float64(time.Second))
		left = max(left, ahead)
	}
	if left < -max(q.info.RTT/8, 2*q.info.Variation) { // probably a tail loss: TCP sends a probe after two round trips
		left = max(3*q.info.RTT-flown, q.info.RTT)
	}
	other := p.minRTT
	if p.rate.best > 0 {
		other += time.Duration(float64(int(p.written-p.delivery)+int(e.size)) / p.rate.best * float64(time.Second))
	}
	return left > other+tailMargin
}

// repeat adds a message to a batch again.
func (s *Session) repeat(p *Path, b *batch, e *entry) {
	flags := frame.Again
	if e.fin {
		flags |= frame.Fin
	}
	s.put(p, b, e.st, e.lo, int(e.size), flags)
	p.stats.CopiesOut += int64(e.size)
}

// fillLost adds a message that was lost with its path.
func (s *Session) fillLost(p *Path, b *batch) bool {
	for i := 0; i < len(s.lost); i++ {
		e := s.lost[i]
		if e.arrived() || e.lo < e.st.out.base {
			s.lost = append(s.lost[:i], s.lost[i+1:]...)
			i--
			continue
		}
		if !s.allowed(e.st, p) {
			continue
		}
		s.lost = append(s.lost[:i], s.lost[i+1:]...)
		s.totals.SentAgain += int64(e.size)
		s.repeat(p, b, &e)
		return true
	}
	return false
}
