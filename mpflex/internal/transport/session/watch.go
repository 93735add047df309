package session

import (
	"encoding/binary"
	"math"
	"time"

	"mplab/mpflex/internal/transport/frame"
)

const (
	// watchEvery is how often paths are checked while payload is in flight.
	watchEvery = 10 * time.Millisecond
	// restEvery is how often a path is checked that has been stalled for restAfter.
	restEvery = 250 * time.Millisecond
	restAfter = 2 * time.Second
	// ackAfter is the maximum delay of an acknowledgement.
	ackAfter = 100 * time.Millisecond
	// stallMargin is the time without progress, beyond two round trips, after which a
	// path counts as stalled.
	stallMargin = 100 * time.Millisecond
	// pingAnswer is how long to wait for the answer to a ping.
	pingAnswer = 5 * time.Second
	// never is later than any deadline.
	never = time.Duration(math.MaxInt64)
)

// watch does all that no packet triggers: it detects stalled paths, copies the tails of
// streams, sends delayed acknowledgements and pings silent paths. It checks every
// watchEvery while payload is in flight or waits. Otherwise it sleeps until the next of
// these tasks is due, or until watchOver wakes it.
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
				tick = nil // at most one check per watchEvery
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

// look checks once and returns the time until the next check, unless watchOver is
// called before.
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
				p.work.Signal() // for copies of tails
			}
		}
	}
	if s.hunger(now) {
		next = min(next, watchEvery)
	}
	return min(next, s.lateAcks(now, lastAcks), s.ping(now))
}

// lookAt updates a path by its TCP counters and returns the time until the next update.
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

// pending reports whether something waits for a path.
func (s *Session) pending() bool {
	for _, g := range s.groups {
		if g.waits() {
			return true
		}
	}
	return len(s.lost) > 0 || s.hasControl() || s.hasDatagrams()
}

// stall marks a path as stalled if it has not delivered for too long.
func (s *Session) stall(p *Path, now int64) {
	if p.stalled || p.written == p.delivery || time.Duration(now) <= p.stallsAt() {
		return
	}
	p.stalled, p.copied = true, 0
	s.repeatControl(p.progress - int64(p.stallPatience())) // frames sent before that have arrived
	s.tell(p.event(Stalled, nil))
	s.wake()
}

// stallsAt returns the time of the session at which the path counts as stalled if it
// delivers nothing.
func (p *Path) stallsAt() time.Duration {
	return time.Duration(max(p.progress, p.oldest())) + p.stallPatience()
}

// stallPatience returns how long a path may deliver nothing before it counts as
// stalled.
func (p *Path) stallPatience() time.Duration {
	return 2*p.info.RTT + stallMargin
}

// oldest returns when the oldest message in flight was sent.
func (p *Path) oldest() int64 {
	if flying := p.sent.flying(); len(flying) > 0 {
		return flying[0].timeNS
	}
	return p.progress
}

// lateAcks queues the delayed acknowledgements that are due. It returns the time until
// the next ones are due.
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

// ping pings paths that are silent while there are streams, and ends those that do not
// answer. It returns the time until the next of these actions.
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
