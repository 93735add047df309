package mptcp

import (
	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
)

// signals processes the MPTCP options of a segment except DSS.
func (e *Engine) signals(s *Sub, dir uint8, seg *tcp.Segment) {
	p, c := seg.Packet, s.Conn
	if p.Has&packet.HasCapable != 0 {
		e.takeCapable(s, dir, seg)
	}
	if p.Has&packet.HasJoin != 0 {
		e.takeJoin(s, dir, p)
	}
	if p.Has&packet.HasAddAddr != 0 {
		e.takeAddAddr(s, dir, p)
	}
	if p.Has&packet.HasRemoveAddr != 0 {
		e.takeRemoveAddr(s, dir, p)
	}
	if p.Has&packet.HasPrio != 0 {
		e.takePrio(s, dir, p)
	}
	if p.Has&packet.HasFail != 0 {
		e.takeFail(s, dir, p)
	}
	if p.Has&packet.HasFastclose != 0 && !c.fastclose {
		c.fastclose = true
		e.happened(s, dir, evFastclose)
	}
	if p.Has&packet.HasReset != 0 {
		e.takeReset(s, dir, p)
	}
}

// takeAddAddr processes ADD_ADDR (RFC 8684 §3.4.1).
func (e *Engine) takeAddAddr(s *Sub, dir uint8, p *packet.Packet) {
	c, o := s.Conn, p.AddAddr()
	if !e.eventful || len(c.multi.addresses) >= maxEvents {
		return
	}
	kind := evAddAddr
	if o.Echo {
		kind = evAddAddrEcho
	}
	c.multi.addresses = append(c.multi.addresses, o.Addr)
	e.note(s, event{
		timeNS: p.TimeNS, kind: kind, dir: dir, address: int32(len(c.multi.addresses) - 1), port: o.Port, addressID: int16(o.AddressID),
	})
}

// takeRemoveAddr processes REMOVE_ADDR (RFC 8684 §3.4.2): it ends the subflows
// of the addresses.
func (e *Engine) takeRemoveAddr(s *Sub, dir uint8, p *packet.Packet) {
	for _, id := range p.RemoveAddr() {
		e.note(s, event{timeNS: p.TimeNS, kind: evRemoveAddr, dir: dir, address: -1, addressID: int16(id)})
		for _, other := range s.Conn.Subs {
			if other.address(dir) == int16(id) {
				other.removed = true
			}
		}
	}
}

// address returns the address ID of a side. The initial subflow has ID 0 at
// both ends.
func (s *Sub) address(side uint8) int16 {
	if !s.Additional {
		return 0
	}
	return s.side[side].addressID
}

// takePrio processes MP_PRIO (RFC 8684 §3.3.8). In version 0 it can refer to
// another subflow than the one that carries it.
func (e *Engine) takePrio(s *Sub, dir uint8, p *packet.Packet) {
	o := p.Prio()
	ev := event{timeNS: p.TimeNS, kind: evPrio, dir: dir, address: -1, addressID: -1}
	if o.Backup {
		ev.value = 1
	}
	named := false
	if o.HasAddressID {
		ev.addressID = int16(o.AddressID)
		for _, other := range s.Conn.Subs {
			if !other.ended && other.address(dir) == int16(o.AddressID) {
				other.side[dir].backup, named = o.Backup, true
			}
		}
	}
	if !named {
		s.side[dir].backup = o.Backup
	}
	e.note(s, ev)
}

// takeFail processes MP_FAIL (RFC 8684 §3.7). With an RST it ends only the
// subflow; otherwise the connection falls back.
func (e *Engine) takeFail(s *Sub, dir uint8, p *packet.Packet) {
	dsn := p.FailDSN()
	if m := s.Conn.multi; m.data != nil && m.data[1-dir].started {
		d := &m.data[1-dir]
		dsn -= d.base + d.origin
	}
	e.note(s, event{timeNS: p.TimeNS, kind: evFail, dir: dir, value: int64(dsn), address: -1, addressID: -1})
	if p.Flags&packet.RST == 0 {
		e.fall(s, dir, noteFail)
	}
}

// takeReset processes MP_TCPRST (RFC 8684 §3.6).
func (e *Engine) takeReset(s *Sub, dir uint8, p *packet.Packet) {
	o := p.Reset()
	if s.resetReason >= 0 {
		return
	}
	s.resetReason = int16(o.Reason)
	ev := event{timeNS: p.TimeNS, kind: evReset, dir: dir, value: int64(o.Reason), address: -1, addressID: -1}
	if o.Transient {
		ev.note = noteTransient
	}
	e.note(s, ev)
}
