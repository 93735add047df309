package tcp

import "mplab/analysis/mptrace/packet"

// half is the state that every direction of a flow needs, even without an
// answer. There can be very many of these, so it is small.
type half struct {
	segments, pushes int64
	firstNS, lastNS  int64
	idleNS           int64 // longest time between two segments
	synNS            int64 // time of the last SYN

	has                packet.Has // options of all segments
	isn                uint32
	syns, fins, rsts   uint32 // segments with the flag
	synAcks            uint32 // those of syns with ACK
	mss                uint16 // 0: not announced
	synID, synChecksum uint16 // of the last SYN
	synFlags           uint8
	ttl                uint8 // of the last segment
	ttlMin, ttlMax     uint8
	scale              uint8

	synSeen                 bool // isn is known
	synWhole                bool // the options of a SYN were captured whole
	hasScale, sackPermitted bool
}

// opens is the number of SYNs without ACK.
func (h *half) opens() uint32 { return h.syns - h.synAcks }

// count counts a segment of any kind.
func (h *half) count(p *packet.Packet) {
	if h.segments == 0 {
		h.begin(p)
	}
	h.counted(p.TimeNS, p.Has, p.Flags, p.TTL)
}

// counted counts a segment that is not the first one.
func (h *half) counted(now int64, has packet.Has, flags, ttl uint8) {
	h.segments++
	h.pushes += int64(flags >> 3 & 1)
	h.has |= has
	idle := now - h.lastNS
	if idle > h.idleNS {
		h.idleNS = idle
	}
	if idle > 0 {
		h.lastNS = now
	}
	if ttl != h.ttl {
		h.ttl, h.ttlMin, h.ttlMax = ttl, min(h.ttlMin, ttl), max(h.ttlMax, ttl)
	}
}

func (h *half) begin(p *packet.Packet) {
	h.firstNS, h.lastNS = p.TimeNS, p.TimeNS
	h.ttl, h.ttlMin, h.ttlMax = p.TTL, p.TTL, p.TTL
}
