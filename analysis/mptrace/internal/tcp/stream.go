package tcp

import (
	"mplab/analysis/mptrace/internal/hist"
	"mplab/analysis/mptrace/internal/interval"
	"mplab/analysis/mptrace/packet"
)

// stream is the data of one direction and its acknowledgements.
type stream struct {
	half *half   // of the same direction
	peer *stream // the other direction

	low, edge uint64 // lowest sequence number; highest plus one
	acked     uint64 // highest acknowledgement, which can include the FIN
	seen      interval.Set
	sent      ring

	started  bool // low and edge are known
	fromSYN  bool // low and edge come from the SYN
	ackKnown bool
	hasFIN   bool
	stray    bool   // strayHi is valid
	shift    uint8  // window scale, if known
	window   uint16 // last announced window
	lastID   uint16 // IPv4 identification of the segment at the edge
	wire     uint32 // maximum size of payload and options of a segment on the wire

	fin      uint64 // number of the FIN
	strayHi  uint64 // end of a segment far beyond the edge
	strayACK uint64 // an acknowledgement far beyond the edge, or 0
	firstACK uint32 // first acknowledgement, if the SYN was not seen

	dataSegments, freshSegments, wireSegments, pureACKs int64
	bytes                                               int64
	size, sizeMin, sizeMax                              uint32 // payload sizes; size: of the last segment

	windows, windowSum, zeroWindows int64
	windowMin, windowMax            uint16

	flightMax, flightSum, initialWindow int64
	acks                                int64 // acknowledgements of payload

	firstPayloadNS, lastPayloadNS, lastFreshNS int64
	firstACKNS, lastACKNS, finACKNS            int64

	rtt          hist.Series
	srtt, rttvar int64 // RFC 6298
	sizes        hist.Sizes

	sacks, dsacks, dupACKs int64 // sent in this direction

	resetNS   int64  // time of this direction's RST, while the flow is reset
	resetEdge uint64 // edge at that time

	loss   *loss // nil while there are no losses
	recent recent
}

// maxJump is the maximum distance of a number from all numbers seen. Beyond it,
// the number counts as damage, unless the next one is near it.
const maxJump = 1 << 22

// defaultWire is used if the MSS is unknown: Ethernet and IPv4.
const defaultWire = 1460

// reset empties a stream. It keeps its lists, unless they are long.
func (s *stream) reset() {
	*s = stream{sent: ring{buf: s.sent.buf}, rtt: s.rtt.Emptied(), sizes: s.sizes.Emptied()}
}

// released returns a pair of streams for reuse, or nil.
func (t *Tracker) released() *[2]stream {
	t.releasing.Lock()
	defer t.releasing.Unlock()
	n := len(t.pairs)
	if n == 0 {
		return nil
	}
	pair := t.pairs[n-1]
	t.pairs = t.pairs[:n-1]
	return pair
}

// open creates the streams of a flow.
func (t *Tracker) open(f *Flow) {
	if f.streams = t.released(); f.streams != nil {
		f.streams[Up].reset()
		f.streams[Down].reset()
	} else {
		f.streams = new([2]stream)
	}
	for dir := range f.streams {
		s := &f.streams[dir]
		s.half, s.peer = &f.half[dir], &f.streams[1-dir]
		s.rtt.Limit = int32(t.o.Samples)
		s.windowMin, s.wire = 1<<16-1, defaultWire
		if f.half[dir].synSeen {
			s.restart(firstTurn + uint64(f.half[dir].isn) + 1)
		}
	}
	f.agree()
}

// restart starts a direction at its first payload byte, if the SYN was seen.
func (s *stream) restart(lo uint64) {
	s.low, s.edge, s.started, s.fromSYN = lo, lo, true, true
	s.acked, s.ackKnown = lo, true
}

// start starts a direction whose SYN was not seen.
func (s *stream) start(seq uint32) {
	lo := firstTurn | uint64(seq)
	if s.ackKnown {
		lo = next(s.acked, seq)
	}
	s.low, s.edge, s.started = lo, lo, true
}

// startACK processes the first acknowledgement of a direction whose SYN was not
// seen.
func (s *stream) startACK(ack uint32) {
	s.ackKnown, s.firstACK = true, ack
	if s.started {
		s.acked = min(next(s.edge, ack), s.low) // earlier data is not in the capture
	} else {
		s.acked = firstTurn | uint64(ack)
	}
}

// agree combines the options of both SYNs: window scales apply if both SYNs
// have one (RFC 7323 §2.2), and segments obey the lower MSS.
func (f *Flow) agree() {
	up, down := &f.half[Up], &f.half[Down]
	wire := uint32(defaultWire)
	switch {
	case up.mss > 0 && down.mss > 0:
		wire = uint32(min(up.mss, down.mss))
	case up.mss > 0 || down.mss > 0:
		wire = uint32(max(up.mss, down.mss))
	}
	for dir := range f.streams {
		f.streams[dir].wire = wire
		if up.hasScale && down.hasScale {
			f.streams[dir].shift = f.half[dir].scale
		}
	}
}

// floor returns the number below which all data of a direction was seen.
func (s *stream) floor() uint64 {
	first := s.seen.First()
	if first.Lo == first.Hi || first.Lo > s.low {
		return s.low
	}
	return first.Hi
}

// plain processes a segment that is neither SYN nor RST.
func (t *Tracker) plain(f *Flow, p *packet.Packet, seg *Segment) {
	dir := seg.Dir & 1
	s := &f.streams[dir]
	h, q := s.half, s.peer
	if !s.started {
		s.start(p.Seq)
	}
	lo := next(s.edge, p.Seq)
	hi := lo + uint64(p.Payload)
	seg.Lo, seg.Hi = lo, hi
	seg.Window = uint32(p.Window) << (s.shift & 15)

	var progress int32 // of the other direction's acknowledgement
	if p.Flags&packet.ACK != 0 {
		if !q.ackKnown {
			q.startACK(p.Ack)
		}
		progress = int32(p.Ack - uint32(q.acked))
		if q.started {
			seg.Ack = next(q.edge, p.Ack)
		}
	}
	inOrder := lo == s.edge && p.Payload != 0
	if !inOrder && progress <= 0 && s.recent.holds(p, f.doubled(dir)) {
		seg.Duplicate = true
		f.duplicates++
		return
	}
	if f.queue < active {
		t.heard(f, dir, p)
	}
	if f.awaitsACK && dir == Up {
		f.thirdACK(p)
	}
	s.recent.add(p)
	beforeNS := h.lastNS
	h.count(p)
	if p.TimeNS > f.LastNS {
		f.LastNS = p.TimeNS
	}

	if p.Payload != 0 {
		s.carry(p.TimeNS, p.Payload, uint32(len(p.Options)))
		if inOrder && s.seen.Extend(lo, hi) {
			seg.Fresh = All
			s.fresh(p.TimeNS, p.IPID, p.TSVal, lo, hi)
		} else {
			t.irregular(f, p, seg, beforeNS)
		}
	}
	switch {
	case progress > 0:
		q.acknowledge(p, seg, uint32(progress))
		if f.reset {
			t.goesOn(f, p, seg)
		}
	case p.Payload == 0 && p.Flags&packet.FIN == 0:
		s.idleACK(q, p, lo, progress)
	}
	s.announce(p.Window)
	if p.DSS&packet.DSSMap != 0 {
		seg.Floor = s.floor()
	}
	if p.Has&packet.HasSACK != 0 {
		t.selective(s, q, p)
	}
	if p.Flags&packet.FIN != 0 {
		t.finish(f, p, dir, hi)
	} else if p.Payload == 0 && p.Flags&packet.ACK != 0 {
		s.pureACKs++
	}
}

// heard records a segment outside the handshake.
func (t *Tracker) heard(f *Flow, dir uint8, p *packet.Packet) {
	if f.half[dir^1].segments > 0 {
		t.move(f, active, p.TimeNS)
	} else if f.queue == opening {
		t.move(f, oneSided, p.TimeNS)
	}
}

func (f *Flow) thirdACK(p *packet.Packet) {
	if p.Flags&packet.ACK != 0 {
		f.awaitsACK = false
		f.ackNS = p.TimeNS
	}
}

// carry counts payload, new or not, in a segment with a number of bytes of
// options.
func (s *stream) carry(now int64, payload, options uint32) {
	if s.dataSegments == 0 {
		s.firstPayloadNS, s.sizeMin = now, payload
	}
	s.dataSegments++
	s.bytes += int64(payload)
	if now > s.lastPayloadNS {
		s.lastPayloadNS = now
	}
	if payload != s.size {
		s.size, s.sizeMin, s.sizeMax = payload, min(s.sizeMin, payload), max(s.sizeMax, payload)
	}
	s.wireSegments++
	if per := s.wire - min(options, s.wire/2); payload > per && per > 0 {
		s.wireSegments += int64((payload - 1) / per)
	}
}

// fresh counts new payload at the edge.
func (s *stream) fresh(now int64, id uint16, stamp uint32, lo, hi uint64) {
	s.edge = hi
	s.lastID = id
	s.fly(now)
	if hi > s.acked || !s.ackKnown {
		e := s.sent.push(s.acks > 0)
		e.hi, e.size, e.again, e.filled = hi, uint32(hi-lo), false, false
		e.firstNS, e.lastNS, e.firstTS, e.lastTS = now, now, stamp, stamp
	}
}

// fly counts the data in flight when new payload is sent.
func (s *stream) fly(now int64) {
	if now > s.lastFreshNS {
		s.lastFreshNS = now
	}
	s.freshSegments++
	from := s.low
	if s.ackKnown {
		from = s.acked
	}
	if flight := int64(s.edge - from); flight > 0 {
		s.flightSum += flight
		s.flightMax = max(s.flightMax, flight)
	}
}

// announce updates the receive window statistics.
func (s *stream) announce(w uint16) {
	s.windows++
	s.windowSum += int64(w)
	if w != s.window || s.windows == 1 {
		s.window, s.windowMin, s.windowMax = w, min(s.windowMin, w), max(s.windowMax, w)
	}
	if w == 0 {
		s.zeroWindows++
	}
}
