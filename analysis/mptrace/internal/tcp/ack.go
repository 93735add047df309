package tcp

import "mplab/analysis/mptrace/packet"

// acknowledge processes an acknowledgement of data of s beyond the previous
// ones.
func (s *stream) acknowledge(p *packet.Packet, seg *Segment, progress uint32) {
	acked := s.acked + uint64(progress)
	bytes := progress
	if acked > s.edge {
		var ok bool
		if bytes, ok = s.acknowledgeUnseen(acked, progress, p.TimeNS); !ok {
			return
		}
	}
	s.acked = acked
	if bytes == 0 {
		return
	}
	seg.Acked = bytes
	if s.acks == 0 {
		s.firstACKNS = p.TimeNS
		if s.fromSYN {
			s.initialWindow = int64(s.seen.Bytes())
		}
	}
	echoed := uint32(0)
	if p.Has&packet.HasTimestamps != 0 {
		echoed = p.TSEcr
	}
	s.advance(acked, bytes, p.TimeNS, echoed)
}

// advance processes an acknowledgement of new payload that was seen. echoed is
// the echoed timestamp, or 0.
func (s *stream) advance(acked uint64, bytes uint32, now int64, echoed uint32) {
	s.acked = acked
	s.acks++
	s.lastACKNS = max(s.lastACKNS, now)
	s.sizes.Add(uint64(bytes))
	s.take(acked, now, echoed)
	if s.loss != nil {
		s.loss.progress(acked)
	}
}

// acknowledgeUnseen processes an acknowledgement beyond all payload seen: of a
// FIN, or of payload that the capture missed. It returns the amount of payload
// in it.
func (s *stream) acknowledgeUnseen(acked uint64, progress uint32, nowNS int64) (uint32, bool) {
	if s.hasFIN && acked == s.fin+1 {
		if s.finACKNS == 0 {
			s.finACKNS = nowNS
		}
		return progress - 1, true
	}
	if acked <= max(s.edge, s.acked)+maxJump {
		return progress, true
	}
	if s.strayACK != 0 && acked >= s.strayACK && acked <= s.strayACK+maxJump {
		s.strayACK = 0
		return progress, true
	}
	s.strayACK = acked
	return 0, false
}

// idleACK processes a segment without payload that acknowledges nothing new: a
// probe of its sender s, or a duplicate acknowledgement of q (RFC 5681 §2).
func (s *stream) idleACK(q *stream, p *packet.Packet, lo uint64, progress int32) {
	if p.Flags&packet.ACK == 0 {
		return
	}
	if lo+1 == s.edge && (s.acked >= s.edge || q.window == 0) {
		s.losses().causes[Probe]++
	}
	if progress == 0 && q.edge > q.acked && p.Window == s.window && s.windows > 0 {
		s.dupACKs++
		if p.Has&packet.HasSignal == 0 || p.Has&packet.HasSACK != 0 { // others are no sign of loss: RFC 8684 §3
			l := q.losses()
			l.dupACKs++
			l.evidenceNS = p.TimeNS
		}
	}
}

// selective processes the SACK blocks of a segment sent by s; q is the
// acknowledged data.
func (t *Tracker) selective(s, q *stream, p *packet.Packet) {
	blocks := p.SACK(t.blocks[:0])
	if len(blocks) == 0 {
		return
	}
	s.sacks++
	near := q.acked
	if isDSACK(blocks, p.Ack) {
		s.dsacks++
		if lo, hi := next(near, blocks[0].Lo), next(near, blocks[0].Hi); q.loss != nil && lo < hi {
			q.loss.duplicate(lo, hi)
		}
		blocks = blocks[1:]
	}
	for _, b := range blocks {
		lo, hi := next(near, b.Lo), next(near, b.Hi)
		if lo >= hi || lo < q.acked || hi > max(q.edge, q.acked)+maxJump {
			continue
		}
		if l := q.losses(); l.sacked.Add(lo, hi) > 0 {
			l.evidenceNS = p.TimeNS
		}
	}
}

// isDSACK reports whether the first block describes bytes that arrived twice:
// they are already acknowledged, or are part of the second block (RFC 2883 §4).
func isDSACK(b []packet.SACKBlock, ack uint32) bool {
	if int32(b[0].Hi-ack) <= 0 {
		return true
	}
	return len(b) > 1 && int32(b[0].Lo-b[1].Lo) >= 0 && int32(b[1].Hi-b[0].Hi) >= 0
}
