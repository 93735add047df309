package tcp

import (
	"encoding/binary"

	"mplab/analysis/mptrace/packet"
)

// Step describes a segment that the fast path processed. All of its payload is
// new and next in order. Its fields have the meaning of those of [Segment].
type Step struct {
	Flow   *Flow
	TimeNS int64
	Lo, Hi uint64
	Ack    uint64
	Floor  uint64 // with a mapping
	Window uint32
	acked  uint32

	dataAt, dataEnd uint16 // place of the captured payload in the packet

	Dir uint8
	DSS packet.DSSFlag // 0: there is none
	// Fields of the DSS, as in the packet: DATA_ACK; first eight bytes of the
	// mapping; its last eight bytes, which can overlap the first.
	DataACK, MapHead, MapTail uint64
}

// Data returns the captured payload; ip is the packet.
func (st *Step) Data(ip []byte) []byte { return ip[st.dataAt:st.dataEnd] }

// HasData reports whether a part of the payload was captured.
func (st *Step) HasData() bool { return st.dataAt < st.dataEnd }

// readDSS reads the fields of a DSS that has a DATA_ACK.
func (st *Step) readDSS(dss packet.DSSFlag, option []byte) {
	at := 8
	if dss&packet.DSSAck64 != 0 {
		st.DataACK, at = binary.BigEndian.Uint64(option[4:12]), 12
	} else {
		st.DataACK = uint64(binary.BigEndian.Uint32(option[4:8]))
	}
	if dss&packet.DSSMap != 0 {
		b := option[at : at+10+int(dss&packet.DSSMap64)>>1] // DSN of 4 or 8 bytes, subflow sequence number, length
		st.MapHead, st.MapTail = binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[len(b)-8:])
	}
}

// Progress reports whether the segment has payload or acknowledges new data.
func (st *Step) Progress() bool { return st.Hi > st.Lo || st.acked != 0 }

// route is an entry of the fast path's cache: a direction of an active flow.
type route struct {
	key   uint64 // of the addresses
	ports uint32 // source and destination, as in the packet
	dir   uint8
	flow  *Flow // nil: free
}

const routes = 1 << 11

// routeOf returns the place of a direction in the cache.
func routeOf(key uint64, ports uint32) uint32 {
	return uint32((key ^ uint64(ports)<<16) * 0x9e3779b97f4a7c15 >> 53)
}

const (
	header4, header6 = 20, 40 // bytes of the IP headers
	header           = 32     // bytes of a TCP header with a timestamp
	nops             = 0x0101
	// plainHeader and plainMask select the fields of the first eight bytes of
	// an IPv4 header that must have fixed values: version, length, fragment.
	plainHeader = 0x45
	plainMask   = 0xff | 0x3f<<48 | 0xff<<56
)

// Fast processes a packet, given from its IP header, if it is one of the usual
// ones: TCP without IP options or extension headers; ACK and PSH are the only
// flags; the options are a timestamp and at most a DSS; its payload is next in
// order; and it is no sign of a loss. It returns false for any other packet,
// and changes nothing then. wire is the length on the wire.
//
// Add does the same, and more, for every packet; both change the same state.
func (t *Tracker) Fast(ip []byte, wire int, now int64, st *Step) bool {
	if len(ip) < header4+header || now >= t.sweepNS || now < t.nowNS-t.o.IdleNS {
		return false
	}
	var key uint64
	var total int
	var id uint16
	ttl, at := ip[8], header4
	if b := (*[header4]byte)(ip); binary.LittleEndian.Uint64(b[0:8])&plainMask == plainHeader {
		if b[9] != 6 {
			return false
		}
		key, total = binary.LittleEndian.Uint64(b[12:20]), int(binary.BigEndian.Uint16(b[2:4]))
		id = binary.BigEndian.Uint16(b[4:6])
	} else if b[0]>>4 == 6 && b[6] == 6 && len(ip) >= header6+header {
		key, total = key6((*[32]byte)(ip[8:])), header6+int(binary.BigEndian.Uint16(b[4:6]))
		ttl, at = b[7], header6
	} else {
		return false
	}
	b := (*[header]byte)(ip[at:])
	ports := binary.LittleEndian.Uint32(b[0:4])
	w := &t.routes[routeOf(key, ports)%routes]
	end := at + int(b[12]>>4)*4
	if w.key != key || w.ports != ports || w.flow == nil || b[13]&^packet.PSH != packet.ACK ||
		binary.BigEndian.Uint32(b[20:24]) != packet.TimestampsAlone || end < at+header || end > total || end > len(ip) || total > wire {
		return false
	}
	f, dir := w.flow, w.dir&1
	if at == header6 && !f.isFrom(dir, (*[32]byte)(ip[8:])) {
		return false
	}
	has, dss, dssAt := packet.HasTimestamps, packet.DSSFlag(0), at+header
	if end != dssAt {
		options := ip[dssAt:end]
		switch head := binary.BigEndian.Uint32(options); {
		case head == packet.DSSAck64Alone && len(options) == 12:
			dss = packet.DSSAck | packet.DSSAck64
		case head == packet.DSSMap64Alone && len(options) == 28 && binary.BigEndian.Uint16(options[26:]) == nops:
			dss = packet.DSSAck | packet.DSSAck64 | packet.DSSMap | packet.DSSMap64
		default:
			if dss, dssAt = packet.UsualDSS(ip[:end], dssAt); dss == 0 {
				return false
			}
		}
		has |= packet.HasDSS
	}
	s := &f.streams[dir]
	q, h := s.peer, s.half
	payload, lo := uint32(total-end), s.edge
	seqAck := binary.BigEndian.Uint64(b[4:12])
	progress := int32(uint32(seqAck) - uint32(q.acked))
	if uint32(seqAck>>32) != uint32(lo) || f.queue != active || f.awaitsACK || f.reset || !f.opened || now-f.LastNS > t.o.IdleNS {
		return false
	}
	window := binary.BigEndian.Uint16(b[14:16])
	switch {
	case payload != 0:
		if s.seen.Top().Hi != lo {
			return false
		}
	case progress > 0:
	case progress < 0 || q.edge > q.acked && window == s.window || s.recent.resembles(seqAck, id):
		return false
	}
	if progress > 0 && (q.acks == 0 || q.acked+uint64(progress) > q.edge) {
		return false
	}

	t.nowNS = now
	stamps := binary.BigEndian.Uint64(b[24:32])
	i := &s.recent.packets[s.recent.at%recentLength]
	s.recent.at++
	i.timeNS, i.seqAck, i.stamps = now, seqAck, stamps
	i.window, i.id, i.checksum = window, id, binary.BigEndian.Uint16(b[16:18])
	i.payload, i.flags = payload, b[13]
	h.counted(now, has, b[13], ttl)
	if now > f.LastNS {
		f.LastNS = now
	}
	if payload != 0 {
		s.carry(now, payload, uint32(end-at-20))
		s.seen.Extend(lo, lo+uint64(payload))
		s.fresh(now, id, uint32(stamps>>32), lo, lo+uint64(payload))
	} else {
		s.pureACKs++
	}
	st.acked = 0
	if progress > 0 {
		st.acked = uint32(progress)
		q.advance(q.acked+uint64(progress), uint32(progress), now, uint32(stamps))
	}
	s.announce(window)
	st.Ack = 0
	if q.started {
		st.Ack = next(q.edge, uint32(seqAck))
	}
	st.Flow, st.TimeNS, st.Lo, st.Hi = f, now, lo, lo+uint64(payload)
	st.Window, st.Dir = uint32(window)<<(s.shift&15), dir
	st.dataAt, st.dataEnd = uint16(end), uint16(min(len(ip), total))
	if st.DSS = dss; dss != 0 {
		st.readDSS(dss, ip[dssAt:end])
	}
	if dss&packet.DSSMap != 0 {
		st.Floor = s.floor()
	}
	return true
}

// Segment converts a step to a segment; p is its decoded packet.
func (st *Step) Segment(p *packet.Packet, seg *Segment) {
	seg.reset(p, st.Flow, st.Dir, false)
	seg.Lo, seg.Hi, seg.Ack, seg.Acked = st.Lo, st.Hi, st.Ack, st.acked
	seg.Window, seg.Established = st.Window, true
	if st.Hi > st.Lo {
		seg.Fresh = All
	}
	if st.DSS&packet.DSSMap != 0 {
		seg.Floor = st.Floor
	}
}

// key6 returns the key of the addresses of an IPv6 header.
func key6(b *[32]byte) uint64 {
	return binary.LittleEndian.Uint64(b[0:8]) ^ binary.LittleEndian.Uint64(b[8:16])*3 ^
		binary.LittleEndian.Uint64(b[16:24])*5 ^ binary.LittleEndian.Uint64(b[24:32])*7
}

// isFrom reports whether a direction of a flow has the addresses of an IPv6
// header.
func (f *Flow) isFrom(dir uint8, b *[32]byte) bool {
	src, dst := &f.Ends[dir&1].Addr, &f.Ends[1-dir&1].Addr
	return binary.BigEndian.Uint64(b[0:8]) == src.Hi && binary.BigEndian.Uint64(b[8:16]) == src.Lo &&
		binary.BigEndian.Uint64(b[16:24]) == dst.Hi && binary.BigEndian.Uint64(b[24:32]) == dst.Lo
}

// remember lets Fast find the direction of a packet that Add processed.
func (t *Tracker) remember(p *packet.Packet, f *Flow, dir uint8) {
	key, ports := routeKey(p.Quirks&packet.IPv6 != 0, &f.Ends[dir&1], &f.Ends[1-dir&1])
	if w := &t.routes[routeOf(key, ports)%routes]; w.flow != f || w.dir != dir {
		*w = route{key, ports, dir, f}
	}
}

// unroute removes a flow that ends from the cache.
func (t *Tracker) unroute(f *Flow) {
	for dir := range f.Ends {
		for _, v6 := range [...]bool{false, true} {
			key, ports := routeKey(v6, &f.Ends[dir], &f.Ends[1-dir])
			if w := &t.routes[routeOf(key, ports)%routes]; w.flow == f {
				*w = route{}
			}
		}
	}
}

// routeKey returns the key of a direction.
func routeKey(v6 bool, from, to *Endpoint) (key uint64, ports uint32) {
	var b [36]byte
	binary.BigEndian.PutUint64(b[0:8], from.Addr.Hi)
	binary.BigEndian.PutUint64(b[8:16], from.Addr.Lo)
	binary.BigEndian.PutUint64(b[16:24], to.Addr.Hi)
	binary.BigEndian.PutUint64(b[24:32], to.Addr.Lo)
	binary.BigEndian.PutUint16(b[32:34], from.Port)
	binary.BigEndian.PutUint16(b[34:36], to.Port)
	if key = key6((*[32]byte)(b[:])); !v6 {
		key = uint64(binary.LittleEndian.Uint32(b[12:16])) | uint64(binary.LittleEndian.Uint32(b[28:32]))<<32
	}
	return key, binary.LittleEndian.Uint32(b[32:36])
}
