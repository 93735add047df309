package tcp

import "mplab/analysis/mptrace/packet"

// The cause of a retransmission is inferred from the sender's knowledge: the
// acknowledgements that passed the capture before it. The first matching rule
// decides.
//
//  1. Probe: one byte below the edge when everything is acknowledged
//     (keep-alive, RFC 9293 §3.8.4), or the first unacknowledged byte while the
//     receiver's window is zero (§3.8.6.1).
//  2. Unneeded: all of it had been acknowledged.
//  3. In a recovery, which lasts until everything is acknowledged that had been
//     sent at its start: RTO for the first unacknowledged segment after a quiet
//     time of at least the timer; otherwise Recovery. The retransmissions after
//     a timeout (RFC 5681 §3.1) are a recovery, too.
//  4. Fast, if the receiver had reported a loss: three duplicate
//     acknowledgements (RFC 5681 §3.2), or more than two segments, or three
//     ranges, selectively acknowledged above (RFC 6675 §4); unless the last
//     such report is older than one and a half round trips and the quiet time
//     is at least the timer. Before the timer can have expired, fewer duplicate
//     acknowledgements or less SACK above are sufficient (RFC 5827, and the
//     time-based rule of RFC 8985 §6).
//  5. TailProbe, without such a report: the last segment, at least a round trip
//     after it and the last progress (RFC 8985 §7), and before the timer
//     expires, or while other segments before it are outstanding.
//  6. RTO: the quiet time is at least the timer. For the first unacknowledged
//     segment, the minimum of the timer and a round trip are sufficient,
//     because there is no other explanation.
//  7. Unknown.
//
// The quiet time is the time since the segment was last sent and since the last
// progress, because both restart the timer (RFC 6298 §5). The timer is
// estimated as SRTT + 4·RTTVAR and at least 200 ms, as in common systems. Round
// trips cover the whole path: the samples of the direction plus the minimum of
// the part between capture and sender.

const (
	minRTO     = 200e6
	initialRTO = 1000e6 // RFC 6298 §2.1
	jitterNS   = 5e6    // maximum error of the capture's and the sender's clock
)

// cause returns the cause of a retransmission of [lo, hi). lastNS is the time
// of its previous transmission; 0: not seen.
func (f *Flow) cause(dir uint8, p *packet.Packet, lo, hi uint64, lastNS int64) Cause {
	s, q := &f.streams[dir], &f.streams[1-dir]
	l := s.losses()
	c := f.conclude(s, q, p, lo, hi, lastNS)
	if c == RTO || c == Fast {
		l.recovering, l.recover = true, s.edge
	}
	l.causes[c]++
	return c
}

func (f *Flow) conclude(s, q *stream, p *packet.Packet, lo, hi uint64, lastNS int64) Cause {
	l := s.loss
	switch {
	case hi == lo+1 && hi == s.edge && s.acked >= hi:
		return Probe
	case q.windows > 0 && q.window == 0 && lo <= s.acked && hi > s.acked:
		return Probe
	case hi <= s.acked:
		return Unneeded
	}
	srtt, rto := f.timer(s, q)
	quiet := p.TimeNS - max(lastNS, s.lastACKNS, s.firstPayloadNS)
	head := lo <= s.acked
	if l.recovering {
		if head && quiet >= rto {
			return RTO
		}
		return Recovery
	}
	strong, weak := l.evidence(hi, s.wire)
	switch {
	case strong && (quiet < rto || p.TimeNS-l.evidenceNS <= srtt*3/2+jitterNS):
		return Fast
	case weak && quiet < rto:
		return Fast
	case hi >= s.edge && srtt > 0 && quiet >= srtt && (quiet < rto || !head):
		return TailProbe
	case quiet >= rto || (head && quiet >= max(minRTO, srtt)):
		return RTO
	}
	return Unknown
}

// evidence reports whether the receiver had indicated that data below hi is
// missing.
func (l *loss) evidence(hi uint64, mss uint32) (strong, weak bool) {
	if l.sacked.Top().Hi <= hi {
		return l.dupACKs >= 3, l.dupACKs > 0
	}
	spans, bytes := l.sacked.Spans(), uint64(0)
	for i := len(spans) - 1; i >= 0 && spans[i].Lo >= hi; i-- {
		bytes += spans[i].Len()
		if bytes > 2*uint64(mss) || len(spans)-i >= 3 {
			return true, true
		}
	}
	return l.dupACKs >= 3, true
}

// timer estimates the sender's smoothed round trip (0: unknown) and timeout, in
// ns.
func (f *Flow) timer(s, q *stream) (srtt, rto int64) {
	handshake, known := f.handshakeNS()
	switch {
	case s.rtt.N() > 0 && q.rtt.N() > 0:
		srtt = s.srtt + q.rtt.Min()
	case s.rtt.N() > 0:
		srtt = s.srtt
		if known {
			srtt += max(0, handshake-s.rtt.Min())
		}
	case known:
		return handshake, max(minRTO, 3*handshake) // RFC 6298 §2.2
	default:
		return 0, initialRTO
	}
	return srtt, max(minRTO, srtt+4*s.rttvar)
}
