package tcp

import (
	"slices"

	"mplab/analysis/mptrace/internal/interval"
	"mplab/analysis/mptrace/packet"
)

// irregular processes payload that does not directly follow the data seen.
// beforeNS is the time of the previous segment in the direction; 0: none.
func (t *Tracker) irregular(f *Flow, p *packet.Packet, seg *Segment, beforeNS int64) {
	s := &f.streams[seg.Dir]
	if !s.fromSYN && s.seen.Bytes() == 0 { // the segment before it may have been a keep-alive
		s.low, s.edge = seg.Lo, seg.Lo
	}
	lo, edge := seg.Lo, s.edge
	if s.isStray(seg.Lo, seg.Hi) {
		if old := p.Payload - t.see(s, seg, lo); old > 0 {
			t.twice(f, p, seg, old, beforeNS)
		}
		return
	}
	switch {
	case s.fromSYN:
		lo = max(lo, s.low)
	case lo+maxJump > s.low:
		s.low = min(s.low, lo)
	}
	old := p.Payload - t.see(s, seg, lo)
	switch {
	case old > 0:
		t.twice(f, p, seg, old, beforeNS)
	case seg.Lo < edge:
		t.late(f, p, seg, beforeNS)
		return
	case seg.Lo > edge:
		s.losses().skip(hole{edge, seg.Lo, p.TimeNS, s.idBefore(), p.IPID})
	}
	if seg.Hi > edge {
		s.fresh(p.TimeNS, p.IPID, p.TSVal, max(seg.Lo, edge), seg.Hi)
	} else if seg.Fresh != None {
		s.fly(p.TimeNS)
	}
}

// idBefore returns the IPv4 identification of the segment at the edge or, if
// unknown, of the second to last segment.
func (s *stream) idBefore() uint16 {
	if s.lastID != 0 {
		return s.lastID
	}
	return s.recent.packets[(s.recent.at-2)%recentLength].id
}

// see adds [lo, seg.Hi) to the data seen and returns the number of new bytes.
func (t *Tracker) see(s *stream, seg *Segment, lo uint64) uint32 {
	var few [4]interval.Span
	gaps := s.seen.New(lo, seg.Hi, few[:0])
	fresh := s.seen.Add(lo, seg.Hi)
	switch fresh {
	case 0:
		seg.Fresh = None
	case seg.Hi - seg.Lo:
		seg.Fresh = All
	default:
		seg.Fresh, seg.Gaps = Some, slices.Clone(gaps)
	}
	return uint32(fresh)
}

// isStray reports whether payload is so far beyond all other data that it is
// probably damage. Its bytes count, but nothing is inferred from its number. If
// the next segment is near it, the capture has missed data instead.
func (s *stream) isStray(lo, hi uint64) bool {
	if lo <= max(s.edge, s.acked)+maxJump {
		s.stray = false
		return false
	}
	if s.stray && lo+maxJump > s.strayHi && lo < s.strayHi+maxJump {
		s.stray = false
		return false
	}
	s.stray, s.strayHi = true, hi
	return true
}

// twice processes a segment of which old bytes were seen before.
func (t *Tracker) twice(f *Flow, p *packet.Packet, seg *Segment, old uint32, beforeNS int64) {
	s := &f.streams[seg.Dir]
	l := s.losses()
	lo, hi := seg.Lo, min(seg.Hi, s.edge)
	firstNS, lastNS := s.sent.times(lo, hi)
	seg.Cause = f.cause(seg.Dir, p, lo, hi, lastNS)
	s.sent.repeat(lo, hi, s.acked, p, s.acks > 0)
	l.twiceSegments++
	l.twiceBytes += int64(old)
	t.record(f, p, seg, Retransmission{
		Bytes: old, SinceFirstNS: since(p.TimeNS, firstNS), SinceLastNS: since(p.TimeNS, lastNS),
		SinceSegmentNS: since(p.TimeNS, beforeNS),
	})
}

// late processes a segment whose payload is new and below the highest number.
func (t *Tracker) late(f *Flow, p *packet.Packet, seg *Segment, beforeNS int64) {
	s := &f.streams[seg.Dir]
	l := s.losses()
	h, known := l.fill(seg.Lo, seg.Hi)
	e := sent{
		hi: seg.Hi, size: p.Payload, firstNS: p.TimeNS, lastNS: p.TimeNS, firstTS: p.TSVal, lastTS: p.TSVal,
	}
	s.edge = max(s.edge, seg.Hi)
	s.fly(p.TimeNS)
	if f.overtaken(seg.Dir, p, h, known, seg.Hi) {
		seg.Reordered = true
		l.reordered++
	} else {
		seg.Hole = true
		seg.Cause = f.cause(seg.Dir, p, seg.Lo, seg.Hi, h.timeNS)
		e.again, e.filled = true, true
		l.holeSegments++
		l.holeBytes += int64(p.Payload)
		t.record(f, p, seg, Retransmission{
			Bytes: p.Payload, Hole: true, SinceFirstNS: -1, SinceLastNS: -1, SinceSegmentNS: since(p.TimeNS, beforeNS),
		})
	}
	if seg.Hi > s.acked && seg.Lo >= s.low {
		s.sent.insert(e, s.acks > 0)
	}
}

// since returns the time since thenNS, or −1 if thenNS is 0.
func since(nowNS, thenNS int64) int64 {
	if thenNS == 0 {
		return -1
	}
	return max(nowNS-thenNS, 0)
}
