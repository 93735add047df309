package tcp

import (
	"encoding/binary"

	"mplab/analysis/mptrace/packet"
)

// Step describes a segment that the fast path processed. All of its payload is
// new and next in order. Its fields have the meaning of those of [Segment].
type Step struct {
	Flow    *Flow
	TimeNS  int64
	Lo, Hi  uint64
	Ack     uint64
	Window  uint32
	Dir     uint8
	DSS     packet.DSSFlag // 0, DSSAck|DSSAck64, or both with DSSMap|DSSMap64
	DSSAt   uint8          // place of the DSS in the packet
	HasData bool           // a part of the payload was captured

	acked uint32
}

// route is an entry of the fast path's cache: the direction of an active flow
// over IPv4.
type route struct {
	addresses uint64 // source and destination, as in the packet
	ports     uint32
	dir       uint8
	flow      *Flow // nil: free
}

const routes = 1 << 11

// routeOf returns the place of a direction in the cache.
func routeOf(addresses uint64, ports uint32) uint32 {
	return uint32((addresses ^ uint64(ports)<<16) * 0x9e3779b97f4a7c15 >> 53)
}

// plainHeader and plainMask select the fields of the first eight bytes of an
// IPv4 header that must have fixed values: version and length, and the
// fragment.
const (
	plainHeader = 0x45
	plainMask   = 0xff | 0x3f<<48 | 0xff<<56
)

// Fast processes a packet, given from its IP header, if it is one of the usual
// ones: TCP over IPv4 without IP options; ACK and PSH are the only flags; the
// options are a timestamp and at most a DSS as Linux sends it; its payload is
// next in order; and it is no sign of a loss. It returns false for any other
// packet, and changes nothing then. wire is the length on the wire.
//
// Add does the same, and more, for every packet; both change the same state.
func (t *Tracker) Fast(ip []byte, wire int, now int64, st *Step) bool {
	if len(ip) < 52 {
		return false
	}
	b := (*[52]byte)(ip)
	addresses, ports := binary.LittleEndian.Uint64(b[12:20]), binary.LittleEndian.Uint32(b[20:24])
	w := &t.routes[routeOf(addresses, ports)%routes]
	if w.addresses != addresses || w.ports != ports || w.flow == nil ||
		binary.LittleEndian.Uint64(b[0:8])&plainMask != plainHeader || b[9] != 6 ||
		b[33]&^packet.PSH != packet.ACK || binary.BigEndian.Uint32(b[40:44]) != packet.TimestampsAlone ||
		now >= t.sweepNS || now < t.nowNS-t.o.IdleNS {
		return false
	}
	total, header := int(binary.BigEndian.Uint16(b[2:4])), 20+int(b[32]>>4)*4
	if header > total || header > len(ip) || total > wire {
		return false
	}
	has, dss, dssAt := packet.HasTimestamps, packet.DSSFlag(0), uint8(52)
	switch header {
	case 52:
	case 64:
		if binary.BigEndian.Uint32(ip[52:56]) != packet.DSSAck64Alone {
			return false
		}
		has, dss = packet.HasTimestamps|packet.HasDSS, packet.DSSAck|packet.DSSAck64
	case 80:
		switch nops := uint16(0x0101); {
		case binary.BigEndian.Uint32(ip[52:56]) == packet.DSSMap64Alone && binary.BigEndian.Uint16(ip[78:80]) == nops:
		case binary.BigEndian.Uint32(ip[54:58]) == packet.DSSMap64Alone && binary.BigEndian.Uint16(ip[52:54]) == nops:
			dssAt = 54
		default:
			return false
		}
		has, dss = packet.HasTimestamps|packet.HasDSS, packet.DSSAck|packet.DSSAck64|packet.DSSMap|packet.DSSMap64
	default:
		return false
	}
	f, dir := w.flow, w.dir&1
	s := f.streams[dir]
	q, h := s.peer, s.half
	payload, lo := uint32(total-header), s.edge
	seqAck := binary.BigEndian.Uint64(b[24:32])
	progress := int32(uint32(seqAck) - uint32(q.acked))
	if uint32(seqAck>>32) != uint32(lo) || f.queue != active || f.awaitsACK || f.reset || !f.opened || now-f.LastNS > t.o.IdleNS {
		return false
	}
	window, id := binary.BigEndian.Uint16(b[34:36]), binary.BigEndian.Uint16(b[4:6])
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
	stamps := binary.BigEndian.Uint64(b[44:52])
	i := &s.recent.packets[s.recent.at%recentLength]
	s.recent.at++
	i.timeNS, i.seqAck, i.stamps = now, seqAck, stamps
	i.window, i.id, i.checksum = window, id, binary.BigEndian.Uint16(b[36:38])
	i.payload, i.flags = payload, b[33]
	h.counted(now, has, b[33], b[8])
	if now > f.LastNS {
		f.LastNS = now
	}
	if payload != 0 {
		s.carry(now, payload, uint32(header-40))
		s.seen.Extend(lo, lo+uint64(payload))
		s.fresh(now, id, uint32(stamps>>32), lo, lo+uint64(payload))
	} else {
		s.pureACKs++
	}
	acked := uint32(0)
	if progress > 0 {
		acked = uint32(progress)
		q.advance(q.acked+uint64(acked), acked, now, uint32(stamps))
	}
	s.announce(window)
	st.Ack = 0
	if q.started {
		st.Ack = next(q.edge, uint32(seqAck))
	}
	st.Flow, st.TimeNS, st.Lo, st.Hi = f, now, lo, lo+uint64(payload)
	st.acked, st.Window = acked, uint32(window)<<(s.shift&15)
	st.Dir, st.DSS, st.DSSAt, st.HasData = dir, dss, dssAt, header < min(len(ip), total)
	return true
}

// Progress reports whether the segment has payload or acknowledges new data.
func (st *Step) Progress() bool { return st.Hi > st.Lo || st.acked != 0 }

// Segment converts a step to a segment; p is its decoded packet.
func (st *Step) Segment(p *packet.Packet, seg *Segment) {
	s := st.Flow.streams[st.Dir]
	seg.reset(p, st.Flow, st.Dir, false)
	seg.Lo, seg.Hi, seg.Ack, seg.Acked = st.Lo, st.Hi, st.Ack, st.acked
	seg.Window, seg.Established = st.Window, true
	if st.Hi > st.Lo {
		seg.Fresh = All
	}
	if st.DSS&packet.DSSMap != 0 {
		seg.Floor = s.floor()
	}
}

// remember lets Fast find the direction of a packet that Add processed.
func (t *Tracker) remember(p *packet.Packet, f *Flow, dir uint8) {
	addresses, ports := routeKey(p.Src, p.Dst, p.SrcPort, p.DstPort)
	if w := &t.routes[routeOf(addresses, ports)%routes]; w.flow != f || w.dir != dir {
		*w = route{addresses, ports, dir, f}
	}
}

// unroute removes a flow that ends from the cache.
func (t *Tracker) unroute(f *Flow) {
	for dir := range f.Ends {
		from, to := &f.Ends[dir], &f.Ends[1-dir]
		if w := &t.routes[routeOf(routeKey(from.Addr, to.Addr, from.Port, to.Port))%routes]; w.flow == f {
			*w = route{}
		}
	}
}

// routeKey returns addresses and ports as Fast reads them from an IPv4 packet.
func routeKey(src, dst packet.Addr, from, to uint16) (addresses uint64, ports uint32) {
	var b [12]byte
	binary.BigEndian.PutUint32(b[0:4], uint32(src.Lo))
	binary.BigEndian.PutUint32(b[4:8], uint32(dst.Lo))
	binary.BigEndian.PutUint16(b[8:10], from)
	binary.BigEndian.PutUint16(b[10:12], to)
	return binary.LittleEndian.Uint64(b[0:8]), binary.LittleEndian.Uint32(b[8:12])
}
