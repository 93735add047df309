package mptcp

import (
	"crypto/hmac"
	"slices"

	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
)

// rare processes what few segments have: flags, signals, and events that the
// subflow waits for.
func (e *Engine) rare(s *Sub, dir uint8, seg *tcp.Segment) {
	p, c := seg.Packet, s.Conn
	if s.watch&watchSuspect != 0 {
		e.heard(s, dir)
	}
	if p.Flags&packet.SYN != 0 {
		e.syn(s, dir, seg)
	}
	if seg.Resumed && s.reset {
		s.reset, s.resetReason = false, -1
		e.note(s, event{timeNS: e.nowNS, kind: evRSTIgnored, dir: s.resetBy, note: noteWentOn, address: -1, addressID: -1})
	}
	if seg.Ignored {
		if s.over() { // answers to packets that were in flight
			return
		}
		e.note(s, event{timeNS: e.nowNS, kind: evRSTIgnored, dir: dir, note: noteNotExpected, address: -1, addressID: -1})
		return
	}
	if p.Has&packet.HasSignal != 0 && (c.MPTCP || e.upgrade(s, seg)) {
		e.signals(s, dir, seg)
	}
	s.opened = s.opened || seg.Established
	if s.watch&watchHandshake != 0 && (s.established() || s.Additional && p.Has&packet.HasDSS != 0) {
		s.watch &^= watchHandshake
		e.happened(s, dir, evEstablished)
	}
	if p.Flags&packet.RST != 0 {
		if !s.reset {
			s.reset, s.resetBy = true, dir
			e.happened(s, dir, evRST)
		}
	} else if p.Flags&packet.FIN != 0 && !s.side[dir].fin {
		s.side[dir].fin = true
		if p.Payload != 0 && !s.side[dir].carried {
			e.firstPayload(s, dir)
		}
		e.happened(s, dir, evFIN)
	}
}

// syn processes a SYN or SYN/ACK.
func (e *Engine) syn(s *Sub, dir uint8, seg *tcp.Segment) {
	c, p := s.Conn, seg.Packet
	if p.Flags&packet.RST == 0 && seg.Lo != 0 {
		s.side[dir].isn, s.side[dir].hasISN = seg.Lo-1, true
	}
	cut := p.Quirks&packet.OptionsCut != 0
	if p.Flags&packet.ACK == 0 {
		if dir == s.turn && s.syn == synMissing {
			s.syn = synWhole
			if cut {
				s.syn = synCut
			}
			e.happened(s, dir, evSYN)
		}
		return
	}
	if c.capable&sawSYN != 0 && !s.Additional && !cut && p.Has&packet.HasCapable == 0 && c.capable&sawSYNACK == 0 {
		c.plain = true
		e.fall(s, dir, noteHandshake)
	}
}

// Steps of a handshake in which MP_CAPABLE was seen.
const (
	sawSYN = 1 << iota
	sawSYNACK
	sawACK
)

// takeCapable processes MP_CAPABLE: version, keys, and the mapping of the first
// data.
func (e *Engine) takeCapable(s *Sub, dir uint8, seg *tcp.Segment) {
	c, p := s.Conn, seg.Packet
	if s.Additional {
		return
	}
	o := p.Capable()
	step, what := uint8(sawACK), noteACK
	switch {
	case p.Flags&packet.SYN == 0:
	case p.Flags&packet.ACK == 0:
		step, what = sawSYN, noteSYN
		if c.capableNS == 0 {
			c.capableNS = p.TimeNS
		}
	default:
		step, what = sawSYNACK, noteSYNACK
		if c.fallback == noteHandshake && !s.side[Up].carried && !s.side[Down].carried { // an earlier one had none
			c.plain, c.fallback = false, noNote
		}
	}
	if c.version < 0 || step == sawSYNACK {
		c.version = int32(o.Version)
	}
	if c.capable&step == 0 {
		c.capable |= step
		e.note(s, event{timeNS: p.TimeNS, kind: evCapable, dir: dir, note: what, address: -1, addressID: -1})
	}
	c.checksum = c.checksum || o.Checksum
	if o.Keys > 0 {
		e.learn(c, dir, o.SenderKey)
	}
	if o.Keys > 1 {
		e.learn(c, 1-dir, o.ReceiverKey)
	}
	if o.HasDataLen && o.DataLen > 0 {
		e.capableMapping(s, dir, seg, uint64(o.DataLen))
	}
}

// join adds the flow of an MP_JOIN SYN to the connection with its token. The
// token is the receiver's, so it also shows which side opened the flow.
func (e *Engine) join(seg *tcp.Segment, j *packet.Join) *Sub {
	owner, ok := e.tokens[j.Token]
	for _, earlier := range e.earlier[j.Token] {
		if owner.conn.plain {
			owner = earlier
		}
	}
	c := owner.conn
	if !ok || c.plain {
		e.warnings.JoinUnknownToken++
		c, owner.side = e.orphans[j.Token], Down
		if c == nil {
			c = e.newOrphan(seg.Packet, j.Token)
		}
	}
	e.revive(c)
	s := c.add(e, seg.Flow)
	s.Additional, s.joined = true, e.spare.joins.get()
	if owner.side == Up {
		s.Turned, s.turn = true, 1
	}
	e.announce(s)
	return s
}

// newOrphan creates a connection that consists only of joins.
func (e *Engine) newOrphan(p *packet.Packet, token uint32) *Conn {
	c := e.newConn(p)
	e.becomeMPTCP(c, -1)
	c.orphan = true
	c.multi.token[Down], c.multi.hasToken[Down] = token, true
	e.orphans[token] = c
	return c
}

// joinState is the state of the handshake of an additional subflow.
type joinState struct {
	synNS            int64 // time of the first MP_JOIN SYN; 0: not seen
	syn, synAck, ack bool
	sound, wrong     bool // an HMAC matches the keys, or does not
	nonce            [2]uint32
}

func (j *joinState) complete() bool { return j.syn && j.synAck && j.ack && !j.wrong }

// hmac returns the value of the column hmac.
func (j *joinState) hmac() string {
	switch {
	case j == nil || !j.sound && !j.wrong:
		return ""
	case j.wrong:
		return "wrong"
	}
	return "ok"
}

// takeJoin processes the MP_JOIN of an additional subflow.
func (e *Engine) takeJoin(s *Sub, dir uint8, p *packet.Packet) {
	if !s.Additional {
		return
	}
	o, j := p.Join(), s.joined
	syn, ack := p.Flags&packet.SYN != 0, p.Flags&packet.ACK != 0
	opened := dir == s.turn
	switch {
	case o.Form == packet.JoinSYN && syn && !ack && opened:
		if !j.syn {
			j.synNS = p.TimeNS
			e.noteJoin(s, dir, &o, noteSYN)
		}
		j.syn, j.nonce[dir] = true, o.Nonce
		s.AddressID = int32(o.AddressID)
		s.side[dir].backup, s.side[dir].addressID = o.Backup, int16(o.AddressID)
	case o.Form == packet.JoinSYNACK && syn && ack && !opened:
		j.nonce[dir] = o.Nonce
		s.side[dir].backup, s.side[dir].addressID = o.Backup, int16(o.AddressID)
		if !j.synAck {
			j.synAck = true
			e.noteJoin(s, dir, &o, noteSYNACK)
			e.verify(s, dir, o.HMAC[:8])
		}
	case o.Form == packet.JoinACK && !syn && ack && opened && !j.ack:
		j.ack = true
		e.noteJoin(s, dir, &o, noteACK)
		if j.synAck {
			e.verify(s, dir, o.HMAC[:])
		}
	}
}

func (e *Engine) noteJoin(s *Sub, dir uint8, o *packet.Join, what note) {
	ev := event{timeNS: e.nowNS, kind: evJoin, dir: dir, note: what, address: -1, addressID: -1}
	if what != noteACK {
		ev.addressID = int16(o.AddressID)
		if o.Backup {
			ev.note++ // the same note with backup
		}
	}
	e.note(s, ev)
}

// verify checks an HMAC if both keys are known. If several connections have the
// same token, the HMAC of the SYN/ACK identifies the joined one.
func (e *Engine) verify(s *Sub, dir uint8, got []byte) {
	j := s.joined
	sound, known := j.matches(s.Conn, dir, got)
	if !sound && !j.ack {
		for _, owner := range e.earlier[s.token()] {
			if ok, _ := j.matches(owner.conn, dir, got); ok && owner.side == s.turn^1 {
				e.rehome(s, owner.conn)
				sound = true
				break
			}
		}
	}
	switch {
	case sound:
		j.sound = true
	case known:
		j.wrong = true
		e.warnings.HMACMismatch++
	}
}

// matches compares the HMAC of a side with the one computed from a connection's
// keys. known is false if the keys are unknown.
func (j *joinState) matches(c *Conn, dir uint8, got []byte) (sound, known bool) {
	m := c.multi
	if m == nil || !m.hasKey[Up] || !m.hasKey[Down] || !j.syn {
		return false, false
	}
	want := joinHMAC(c.version, m.key[dir], m.key[1-dir], j.nonce[dir], j.nonce[1-dir])
	return hmac.Equal(want[:len(got)], got), true
}

// token returns the token in a subflow's MP_JOIN: that of the side that did not
// open it.
func (s *Sub) token() uint32 { return s.Conn.multi.token[s.turn^1] }

// rehome moves a subflow, of which only the SYNs were seen, to another
// connection.
func (e *Engine) rehome(s *Sub, to *Conn) {
	from, id := s.Conn, s.ID
	e.revive(to)
	from.Subs = slices.DeleteFunc(from.Subs, func(other *Sub) bool { return other == s })
	from.live--
	if id == from.made-1 {
		from.made--
	}
	s.Conn, s.ID = to, to.made
	to.Subs = append(to.Subs, s)
	to.made++
	to.live++
	to.lastNS = max(to.lastNS, e.nowNS)
	from.events = slices.DeleteFunc(from.events, func(ev event) bool {
		if ev.sub != id {
			return false
		}
		ev.sub = s.ID
		e.keep(to, ev)
		return true
	})
	e.announce(s)
	if from.live == 0 {
		e.endOrWait(from)
	}
}
