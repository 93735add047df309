package tcp

import (
	"mplab/analysis/mptrace/packet"
	"mplab/internal/list"
)

// Flow is one TCP connection, or one subflow of an MPTCP connection. Its fields
// are fixed when the flow starts, except where stated. Use its methods, and
// fields that change, only after its end, unless tracker and caller share a
// goroutine.
type Flow struct {
	// Owner is free for the consumer of the segments. It and Ends fill a cache
	// line that does not change.
	Owner any
	Ends  [2]Endpoint // Ends[Up] opened the flow, as far as known

	Iface   int32 // of the first packet
	SYNSeen bool  // the first packet was its SYN (can change if the SYN is reordered)

	queue     uint8
	reset     bool  // an RST came before both FINs, and the flow did not continue
	settled   bool  // an RST was accepted, as far as the capture shows
	resetBy   uint8 // direction of that RST
	awaitsACK bool  // the SYN/ACK was seen, but not the third packet of the handshake
	opened    bool  // cached result of Established
	fins      [2]bool

	StartNS int64
	LastNS  int64 // changes

	streams                *[2]stream // nil before payload or an acknowledgement
	half                   [2]half
	synNS, synAckNS, ackNS int64 // first SYN, first SYN/ACK, third packet; 0: not seen
	duplicates             int64
	serial                 uint64
	queuedNS               int64
	list.Links[Flow]
}

// direction returns the direction of a packet, and whether the packet belongs
// to the flow.
func (f *Flow) direction(p *packet.Packet) (uint8, bool) {
	up, down := &f.Ends[Up], &f.Ends[Down]
	if p.SrcPort == up.Port && p.DstPort == down.Port && p.Src == up.Addr && p.Dst == down.Addr {
		return Up, true
	}
	if p.SrcPort == down.Port && p.DstPort == up.Port && p.Src == down.Addr && p.Dst == up.Addr {
		return Down, true
	}
	return Up, false
}

// firstTurn is the upper half of a direction's first unwrapped number. It
// leaves room below.
const firstTurn = 1 << 32

// next returns the unwrapped number of seq that is closest to `to`.
func next(to uint64, seq uint32) uint64 {
	return to + uint64(int64(int32(seq-uint32(to))))
}

// unwrap extends a sequence number of a direction to 64 bits, closest to the
// last number seen. It returns 0 before the direction's first packet.
func (f *Flow) unwrap(dir uint8, seq uint32) uint64 {
	if f.streams != nil && f.streams[dir].started {
		return next(f.streams[dir].edge, seq)
	}
	if h := &f.half[dir]; h.synSeen {
		return next(firstTurn|uint64(h.isn), seq)
	}
	return 0
}

// Filled returns the number of bytes of a direction that were never seen but
// count as seen to bound memory (see interval.MaxSpans).
func (f *Flow) Filled(dir uint8) int64 {
	if f.streams == nil {
		return 0
	}
	return int64(f.streams[dir].seen.Filled())
}

// Established reports whether the TCP handshake completed: its third packet was
// seen, or packets that only follow it.
func (f *Flow) Established() bool {
	if f.streams == nil {
		return false
	}
	up, down := &f.streams[Up], &f.streams[Down]
	return f.ackNS != 0 || (up.windows > 0 && down.windows > 0) || up.carried() || down.carried()
}

// carried reports whether payload and segments outside the handshake were seen.
func (s *stream) carried() bool { return s.windows > 0 && s.bytes > 0 }

// Closed returns "fin" if both sides sent FIN, "rst" if an RST ended the flow
// before that, and otherwise "open".
func (f *Flow) Closed() string {
	switch {
	case f.reset:
		return "rst"
	case f.fins[Up] && f.fins[Down]:
		return "fin"
	}
	return "open"
}

// handshakeNS returns the time from SYN to third packet: one round trip,
// independent of the place of capture. It is unknown if SYN or SYN/ACK were
// retransmitted.
func (f *Flow) handshakeNS() (int64, bool) {
	if f.half[Up].opens() != 1 || f.half[Down].synAcks != 1 || f.ackNS == 0 || f.synNS == 0 {
		return 0, false
	}
	return f.ackNS - f.synNS, true
}
