package tcp

import "mplab/analysis/mptrace/packet"

// special processes the segments that plain does not: SYN, RST, and the first
// segment that needs the flow's streams.
func (t *Tracker) special(f *Flow, p *packet.Packet, seg *Segment) {
	seg.Window = uint32(p.Window)
	switch {
	case p.Flags&packet.RST != 0:
		t.abort(f, p, seg)
	case p.Flags&packet.SYN != 0:
		if f.repeatsSYN(seg.Dir, p) {
			seg.Duplicate = true
			f.duplicates++
		} else {
			t.synchronize(f, p, seg)
		}
	default:
		t.open(f)
		t.plain(f, p, seg)
		return
	}
	if p.Flags&packet.ACK != 0 {
		seg.Ack = f.unwrap(seg.Dir^1, p.Ack)
	}
	if seg.Lo == 0 {
		seg.Lo = f.unwrap(seg.Dir, p.Seq)
		if seg.Lo != 0 && p.Flags&(packet.SYN|packet.RST) == packet.SYN {
			seg.Lo++
		}
		seg.Hi = seg.Lo
	}
}

// abort processes an RST. Its payload is a diagnostic and not part of the
// stream.
func (t *Tracker) abort(f *Flow, p *packet.Packet, seg *Segment) {
	h := &f.half[seg.Dir]
	if f.streams != nil {
		s := &f.streams[seg.Dir]
		if s.recent.holds(p, f.doubled(seg.Dir)) {
			seg.Duplicate = true
			f.duplicates++
			return
		}
		s.recent.add(p)
	}
	h.count(p)
	h.rsts++
	f.LastNS = max(f.LastNS, p.TimeNS)
	t.takeReset(f, p, seg)
}

// synchronize processes a SYN.
func (t *Tracker) synchronize(f *Flow, p *packet.Packet, seg *Segment) {
	dir := seg.Dir
	h := &f.half[dir]
	h.count(p)
	f.LastNS = max(f.LastNS, p.TimeNS)
	h.syns++
	if p.Flags&packet.ACK != 0 {
		h.synAcks++
		if dir == Down && f.synAckNS == 0 {
			f.synAckNS = p.TimeNS
			f.awaitsACK = f.ackNS == 0
		}
	} else if dir == Up && f.synNS == 0 {
		f.synNS, f.SYNSeen = p.TimeNS, true
	}
	h.isn, h.synSeen = p.Seq, true
	h.synNS, h.synID, h.synChecksum, h.synFlags = p.TimeNS, p.IPID, p.Checksum, p.Flags
	h.announce(p)
	if f.reset && dir == f.resetBy && p.Flags&packet.ACK != 0 { // another SYN was answered
		t.unreset(f, p, seg)
	}
	if f.streams == nil {
		if p.Payload == 0 {
			return
		}
		t.open(f)
		t.heard(f, dir, p)
	} else if s := &f.streams[dir]; s.bytes == 0 && !s.fromSYN {
		lo := firstTurn + uint64(p.Seq) + 1
		if s.ackKnown {
			lo = next(s.acked, p.Seq+1)
		}
		s.restart(lo)
	}
	f.agree()
	t.synPayload(f, p, seg)
}

// announce stores the options of a SYN.
func (h *half) announce(p *packet.Packet) {
	if p.Quirks&packet.OptionsCut == 0 {
		h.synWhole = true
	}
	if p.Has&packet.HasMSS != 0 {
		h.mss = p.MSS()
	}
	if p.Has&packet.HasWindowScale != 0 {
		h.scale, h.hasScale = p.WindowScale(), true
	}
	if p.Has&packet.HasSACKPermitted != 0 {
		h.sackPermitted = true
	}
}

// synPayload processes the payload of a SYN (TCP Fast Open, RFC 7413) and the
// data that a SYN/ACK acknowledges.
func (t *Tracker) synPayload(f *Flow, p *packet.Packet, seg *Segment) {
	s, q := &f.streams[seg.Dir], &f.streams[1-seg.Dir]
	seg.Lo = next(s.edge, p.Seq+1)
	seg.Hi = seg.Lo + uint64(p.Payload)
	if p.Payload != 0 {
		s.carry(p.TimeNS, p.Payload, uint32(len(p.Options)))
		t.irregular(f, p, seg, 0)
	}
	if p.Flags&packet.ACK != 0 && q.ackKnown {
		if progress := int32(p.Ack - uint32(q.acked)); progress > 0 {
			q.acknowledge(p, seg, uint32(progress))
		}
	}
}

// finish processes a FIN with number hi.
func (t *Tracker) finish(f *Flow, p *packet.Packet, dir uint8, hi uint64) {
	f.half[dir].fins++
	s := &f.streams[dir]
	if !s.hasFIN && hi <= s.edge+maxJump {
		s.hasFIN, s.fin = true, hi
		s.edge = max(s.edge, hi)
	}
	if f.fins[dir] {
		return
	}
	f.fins[dir] = true
	if f.fins[dir^1] && !f.reset {
		t.move(f, closed, p.TimeNS)
	}
}
