package session

import (
	"encoding/binary"
	"math"
	"time"

	"mplab/mpflex/internal/transport/frame"
)

const (
	// watchEvery is how often the paths are looked at while something is under way.
	watchEvery = 10 * time.Millisecond
	// restEvery is how often a path is that has been stalled for restAfter.
	restEvery = 250 * time.Millisecond
	restAfter = 2 * time.Second
	// ackAfter is how long an acknowledgement of received bytes waits at most.
	ackAfter = 100 * time.Millisecond
	// stallMargin is how long a path may be without progress, beyond two round trips.
	stallMargin = 100 * time.Millisecond
	// pingAnswer is how long the answer to a ping may take.
	pingAnswer = 5 * time.Second
	// never is later than anything that is waited for.
	never = time.Duration(math.MaxInt64)
)

// watch does what no packet triggers: it finds paths that make no progress, copies
// the tails of streams, sends acknowledgements that wait, and pings silent paths.
// It looks every watchEvery while payload is under way or waits. Otherwise it sleeps
// until the next of these is due, or until watchOver wakes it.
func (s *Session) watch() {
	timer := time.NewTimer(never)
	defer timer.Stop()
	lastAcks := int64(0)
	for {
		looked := time.Now()
		next := s.look(&lastAcks)
		tick := s.tick
		for ready := false; !ready; {
			if next <= watchEvery {
				tick = nil // one look in watchEvery is enough
			}
			timer.Reset(next)
			select {
			case <-s.done:
				return
			case <-timer.C:
				ready = true
			case <-tick:
				next = watchEvery - time.Since(looked)
				ready = next <= 0
			}
		}
	}
}

// look looks once and returns after how long it must look again, unless watchOver
// is called before that.
func (s *Session) look(lastAcks *int64) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	if s.err != nil {
		return never
	}
	select {
	case <-s.tick:
	default:
	}
	now := s.nowNS()
	next := s.overdue(now)
	if len(s.paths) == 0 {
		left := s.config.PathTimeout - time.Since(s.pathless)
		if left <= 0 {
			go s.end(ErrNoPath, false)
			return never
		}
		return left
	}
	if s.pending() {
		next = watchEvery
	}
	for _, p := range s.paths {
		next = min(next, s.lookAt(p, now))
	}
	if next <= watchEvery {
		for _, p := range s.paths {
			if p.idle {
				p.work.Signal() // the tails
			}
		}
	}
	if s.hunger(now) {
		next = min(next, watchEvery)
	}
	return min(next, s.lateAcks(now, lastAcks), s.ping(now))
}

// lookAt updates a path by its TCP counters, and returns after how long it must do so
// again.
func (s *Session) lookAt(p *Path, now int64) time.Duration {
	if p.written == p.delivery {
		return never
	}
	if p.refresh() != nil {
		return watchEvery
	}
	if !p.blocked && p.idle {
		p.room = p.space()
	}
	s.stall(p, now)
	switch left := p.stallsAt() - time.Duration(now); {
	case p.stalled && left < -restAfter:
		return restEvery
	case p.stalled, p.payload > p.delivery:
		return watchEvery
	case p.written > p.delivery:
		return max(watchEvery, left)
	}
	return never
}

// pending says whether something waits for a path.
func (s *Session) pending() bool {
	for _, g := range s.groups {
		if g.waits() {
			return true
		}
	}
	return len(s.lost) > 0 || s.hasControl() || s.hasDatagrams()
}

// stall takes a path for stalled when it has not delivered for too long.
func (s *Session) stall(p *Path, now int64) {
	if p.stalled || p.written == p.delivery || time.Duration(now) <= p.stallsAt() {
		return
	}
	p.stalled, p.copied = true, 0
	s.repeatControl(p.progress - int64(p.stallPatience())) // what was sent before has arrived
	s.tell(p.event(Stalled, nil))
	s.wake()
}

// stallsAt is until when the path may deliver nothing before it counts as stalled,
// in the time of the session.
func (p *Path) stallsAt() time.Duration {
	return time.Duration(max(p.progress, p.oldest())) + p.stallPatience()
}

// stallPatience is how long a path may deliver nothing before it counts as stalled.
func (p *Path) stallPatience() time.Duration {
	return 2*p.info.RTT + stallMargin
}

// oldest is when the message was sent that has been under way longest.
func (p *Path) oldest() int64 {
	if flying := p.sent.flying(); len(flying) > 0 {
		return flying[0].timeNS
	}
	return p.progress
}

// lateAcks sends the acknowledgements that waited, and returns after how long those
// that wait now are due.
func (s *Session) lateAcks(now int64, last *int64) time.Duration {
	waiting := false
	due := time.Duration(now-*last) >= ackAfter
	if due {
		*last = now
	}
	for _, st := range s.streams {
		if !st.ackSoon {
			continue
		}
		if due {
			st.dueAck()
		} else {
			waiting = true
		}
	}
	if !waiting {
		return never
	}
	return max(watchEvery, ackAfter-time.Duration(now-*last))
}

// ping asks paths that are silent while there are streams whether they live, and
// returns after how long the next one must be asked or given up.
func (s *Session) ping(now int64) time.Duration {
	next := never
	if len(s.streams) == 0 {
		return next
	}
	for _, p := range s.paths {
		left := p.link.Keepalive - time.Duration(now-p.heardNS)
		if p.pingNS == 0 && left <= 0 {
			p.pingNS = now
			p.pings++
			p.control = frame.Header{Type: frame.Ping, Size: 8}.Append(p.control)
			p.control = binary.BigEndian.AppendUint64(p.control, p.pings)
			p.work.Signal()
		}
		if p.pingNS != 0 {
			left = max(pingAnswer, 4*p.info.RTT) - time.Duration(now-p.pingNS)
			left = max(left, pingAnswer-time.Duration(now-p.heardNS))
			if left <= 0 {
				go p.end(errSilent)
				continue
			}
		}
		next = min(next, left)
	}
	return next
}
