package session

import (
	"encoding/binary"
	"time"

	"mplab/mpflex/frame"
)

const (
	// watchEvery is how often the paths are looked at while something is under way.
	watchEvery = 10 * time.Millisecond
	// restEvery is how often when nothing is, but there are streams or no path.
	restEvery = 250 * time.Millisecond
	// ackAfter is how long an acknowledgement of received bytes waits at most.
	ackAfter = 100 * time.Millisecond
	// stallMargin is how long a path may be without progress, beyond two round trips.
	stallMargin = 100 * time.Millisecond
	// pingAnswer is how long the answer to a ping may take.
	pingAnswer = 5 * time.Second
)

// watch looks after what no packet tells of: paths that make no progress, the
// tails of streams, acknowledgements that wait, paths that are silent. Nothing
// wakes it as long as nothing is under way.
func (s *Session) watch() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	lastAcks := int64(0)
	for {
		next := s.look(&lastAcks)
		if next == 0 {
			select {
			case <-s.done:
				return
			case <-s.tick:
			}
			continue
		}
		timer.Reset(next)
		select {
		case <-s.done:
			return
		case <-timer.C:
		}
	}
}

// look looks once and says after how long it wants to look again; 0: when
// something happens.
func (s *Session) look(lastAcks *int64) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0
	}
	select {
	case <-s.tick:
	default:
	}
	now := s.nowNS()
	s.overdue(now)
	if len(s.paths) == 0 {
		if time.Since(s.pathless) > s.config.PathTimeout {
			go s.end(ErrNoPath, false)
			return restEvery
		}
		return restEvery
	}
	busy := s.pending()
	for _, p := range s.paths {
		if p.written == p.delivery {
			continue
		}
		busy = true
		if p.refresh() != nil {
			continue
		}
		if !p.blocked && p.idle {
			p.room = p.space()
		}
		s.stall(p, now)
	}
	if busy {
		for _, p := range s.paths {
			if p.idle {
				p.work.Signal() // the tails
			}
		}
	}
	soon := s.lateAcks(now, lastAcks)
	s.ping(now)
	switch {
	case busy:
		return watchEvery
	case soon:
		return ackAfter / 2
	case len(s.streams) > 0:
		return restEvery
	}
	return 0
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
	if p.stalled || p.written == p.delivery {
		return
	}
	patience := 2*p.info.RTT + stallMargin
	if time.Duration(now-p.progress) <= patience || time.Duration(now-p.oldest()) <= patience {
		return
	}
	p.stalled, p.copied = true, 0
	s.repeatControl(p.progress - int64(patience)) // what was sent before has arrived
	s.tell(p.event(Stalled, nil))
	s.wake()
}

// oldest is when the message was sent that has been under way longest.
func (p *Path) oldest() int64 {
	if flying := p.sent.flying(); len(flying) > 0 {
		return flying[0].timeNS
	}
	return p.progress
}

// lateAcks sends the acknowledgements that waited, and says whether some do.
func (s *Session) lateAcks(now int64, last *int64) bool {
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
	return waiting
}

// ping asks paths that are silent while there are streams whether they live.
func (s *Session) ping(now int64) {
	if len(s.streams) == 0 {
		return
	}
	for _, p := range s.paths {
		switch {
		case p.pingNS != 0:
			if time.Duration(now-p.pingNS) > max(pingAnswer, 4*p.info.RTT) && time.Duration(now-p.heardNS) > pingAnswer {
				go p.end(errSilent)
			}
		case time.Duration(now-p.heardNS) > p.link.Keepalive:
			p.pingNS = now
			p.pings++
			p.control = frame.Header{Type: frame.Ping, Size: 8}.Append(p.control)
			p.control = binary.BigEndian.AppendUint64(p.control, p.pings)
			p.work.Signal()
		}
	}
}
