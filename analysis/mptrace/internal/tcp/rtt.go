package tcp

import "mplab/analysis/mptrace/packet"

// A round trip is measured once per acknowledgement, from the last segment
// that it acknowledges whole. SYN and FIN give none: the handshake has its own
// column, and FINs wait for applications.
//
// When one of the acknowledged segments was sent again, or the receiver had
// told of a hole, the acknowledgement may answer another transmission (Karn).
// The echoed timestamp then tells which; without timestamps a sample is taken
// only when nothing was sent again after the last segment.

// take removes the segments below acked from those outstanding, and measures.
func (s *stream) take(acked uint64, p *packet.Packet) {
	r := &s.sent
	from, again := r.head, false
	for r.head != r.tail {
		e := r.at(r.head)
		if e.hi > acked {
			break
		}
		again = again || e.again
		r.head++
	}
	switch {
	case r.head == from:
	case !again && s.calm():
		s.sample(p.TimeNS, r.at(r.head-1).lastNS)
	case p.Has&packet.HasTimestamps != 0 && p.TSEcr != 0:
		s.sampleEchoed(from, p)
	default:
		s.sampleKarn(from, p)
	}
}

func (s *stream) sample(nowNS, sentNS int64) {
	v := nowNS - sentNS
	if v < 0 { // disorder between interfaces
		return
	}
	if s.rtt.N() == 0 {
		s.srtt, s.rttvar = v, v/2
	} else {
		d := v - s.srtt
		s.srtt += d >> 3
		if d < 0 {
			d = -d
		}
		s.rttvar += (d - s.rttvar) >> 2
	}
	s.rtt.Add(nowNS, v)
}

// sampleEchoed measures from the transmission whose timestamp is echoed: that
// of the segment that let the acknowledgement go on (RFC 7323 §4.3).
func (s *stream) sampleEchoed(from uint32, p *packet.Packet) {
	for i := s.sent.head; i != from; {
		i--
		e := s.sent.at(i)
		switch {
		case e.again && !e.filled && e.firstTS == e.lastTS:
		case e.lastTS == p.TSEcr:
			s.sample(p.TimeNS, e.lastNS)
			return
		case e.firstTS == p.TSEcr && !e.filled:
			s.sample(p.TimeNS, e.firstNS)
			return
		}
	}
}

func (s *stream) sampleKarn(from uint32, p *packet.Packet) {
	last := s.sent.at(s.sent.head - 1)
	if last.again || !s.calm() {
		return
	}
	for i := from; i != s.sent.head; i++ {
		if e := s.sent.at(i); e.again && e.lastNS > last.lastNS {
			return
		}
	}
	s.sample(p.TimeNS, last.lastNS)
}
