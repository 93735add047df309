package tcp

// A round trip is measured once per acknowledgement, from the last segment that
// it acknowledges completely. SYN and FIN yield no sample: the handshake has a
// separate column, and a FIN may wait for the application.
//
// If one of the acknowledged segments was retransmitted, or the receiver had
// reported a hole, the acknowledgement may answer another transmission (Karn).
// Then the echoed timestamp identifies the transmission. Without timestamps, a
// sample is taken only if the last segment was not sent again.

// take removes the segments below acked from the unacknowledged ones, and
// measures.
func (s *stream) take(acked uint64, now int64, echoed uint32) {
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
		s.sample(now, r.at(r.head-1).lastNS)
	case echoed != 0:
		s.sampleEchoed(from, now, echoed)
	default:
		s.sampleKarn(from, now)
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

// sampleEchoed measures from the transmission whose timestamp is echoed: the
// one that advanced the acknowledgement (RFC 7323 §4.3).
func (s *stream) sampleEchoed(from uint32, now int64, echoed uint32) {
	for i := s.sent.head; i != from; {
		i--
		e := s.sent.at(i)
		switch {
		case e.again && !e.filled && e.firstTS == e.lastTS:
		case e.lastTS == echoed:
			s.sample(now, e.lastNS)
			return
		case e.firstTS == echoed && !e.filled:
			s.sample(now, e.firstNS)
			return
		}
	}
}

func (s *stream) sampleKarn(from uint32, now int64) {
	last := s.sent.at(s.sent.head - 1)
	if last.again || !s.calm() {
		return
	}
	for i := from; i != s.sent.head; i++ {
		if e := s.sent.at(i); e.again && e.lastNS > last.lastNS {
			return
		}
	}
	s.sample(now, last.lastNS)
}
