package session

import (
	"time"

	"mplab/mpflex/frame"
)

// copyBudgetMost bounds the tail copies that may be made at once, in bytes.
const copyBudgetMost = 256 << 10

// tailMargin is how much earlier a copy of a message must arrive to be worth
// its bytes.
const tailMargin = 5 * time.Millisecond

// duplicate notes that a message which is placed now is to go over another path
// too.
func (s *Session) duplicate(q *Path, st *Stream, size int) {
	q.twins = append(q.twins, entry{st: st, lo: st.next, size: uint32(size), fin: st.finished && st.next+uint64(size) == st.out.end})
	if q.idle {
		q.work.Signal()
	}
}

// fillCopy takes a copy of a message that is late on another path.
func (s *Session) fillCopy(p *Path, b *batch) bool {
	for len(p.twins) > 0 {
		e := p.twins[0]
		p.twins = p.twins[1:]
		if !e.arrived() && e.lo >= e.st.out.base {
			s.totals.CopiedRedundant += int64(e.size)
			s.repeat(p, b, &e)
			return true
		}
	}
	for _, q := range s.paths {
		if q == p || p.stalled || !s.mayCopy(q, p) {
			continue
		}
		if e := s.late(q, p); e != nil {
			s.repeat(p, b, e)
			return true
		}
	}
	return false
}

// mayCopy says whether what q holds may go over p.
func (s *Session) mayCopy(q, p *Path) bool {
	if p.stalled {
		return false
	}
	return len(q.sent.flying()) > 0
}

// late returns the message on q that is to be copied to p next, marked; nil:
// none.
func (s *Session) late(q, p *Path) *entry {
	r := &s.config.Reinjection
	flying := q.sent.flying()
	if q.stalled && !r.NoStall {
		for i := range flying {
			if e := &flying[i]; !e.again && !e.arrived() && s.allowed(e.st, p) {
				e.again = true
				s.totals.CopiedStall += int64(e.size)
				return e
			}
		}
		return nil
	}
	if !r.NoBuffer {
		if e := &flying[0]; !e.again && !e.arrived() && s.allowed(e.st, p) && s.holdsUp(e) {
			e.again = true
			s.totals.CopiedBuffer += int64(e.size)
			return e
		}
	}
	if r.NoTail || s.copyBudget <= 0 {
		return nil
	}
	for i := len(flying) - 1; i >= 0; i-- {
		e := &flying[i]
		if e.again || e.arrived() {
			continue
		}
		if e.st.next != e.st.out.end || !s.allowed(e.st, p) {
			return nil
		}
		if !s.faster(e, q, p) {
			return nil
		}
		e.again = true
		s.copyBudget -= float64(e.size)
		s.totals.CopiedTail += int64(e.size)
		return e
	}
	return nil
}

// allowed says whether a stream may use a path.
func (s *Session) allowed(st *Stream, p *Path) bool {
	if st.group.scheme.Paths == nil {
		return true
	}
	ok, _ := st.group.scheme.Paths(p.link.Name)
	return ok
}

// holdsUp says whether the receiver keeps so much behind a message that its
// window is nearly full (nikravesh2016 §4.4): what was sent behind it stands
// for what the receiver has.
func (s *Session) holdsUp(e *entry) bool {
	return float64(e.st.next-e.lo) >= s.config.Reinjection.Eta*float64(s.config.Window)
}

// faster says whether a message that flies on q would arrive earlier if it were
// sent on p now.
func (s *Session) faster(e *entry, q, p *Path) bool {
	flown := time.Duration(s.nowNS() - e.timeNS)
	left := q.info.RTT - flown
	if q.rate.best > 0 {
		ahead := time.Duration(float64(e.end-q.delivery) / q.rate.best * float64(time.Second))
		left = max(left, ahead)
	}
	if left < 0 { // it should have been acknowledged
		left = -left
	}
	other := p.minRTT
	if p.rate.best > 0 {
		other += time.Duration(float64(int(p.written-p.delivery)+int(e.size)) / p.rate.best * float64(time.Second))
	}
	return left > other+tailMargin
}

// repeat puts a message into a batch once more.
func (s *Session) repeat(p *Path, b *batch, e *entry) {
	flags := frame.Again
	if e.fin {
		flags |= frame.Fin
	}
	s.put(p, b, e.st, e.lo, int(e.size), flags)
	p.stats.CopiesOut += int64(e.size)
}

// fillLost takes a message that was lost with its path.
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
