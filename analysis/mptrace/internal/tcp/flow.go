package tcp

import "mplab/analysis/mptrace/packet"

// Flow is one TCP connection, or one subflow of an MPTCP connection, from its
// first packet on. The fields are fixed when the flow begins, but for those
// that say otherwise. Its methods, and fields that change, are for after its
// end, unless tracker and caller share a goroutine.
type Flow struct {
	Ends    [2]Endpoint // Ends[Up] opened the flow, as far as is known
	Iface   int32       // of the first packet
	SYNSeen bool        // the first packet was its SYN (or the SYN came late: changes)

	queue     uint8
	reset     bool  // a RST came before both FINs, and the flow did not go on
	settled   bool  // a RST was accepted as far as the capture can tell
	resetBy   uint8 // direction of that RST
	awaitsACK bool  // the SYN/ACK was seen, the third ACK was not
	opened    bool  // Established, as soon as somebody asked
	fins      [2]bool

	StartNS int64
	LastNS  int64 // changes

	// Owner belongs to whoever takes the segments.
	Owner any

	streams                [2]*stream // nil until payload or an acknowledgement comes
	half                   [2]half
	synNS, synAckNS, ackNS int64 // first SYN, first SYN/ACK, third ACK; 0: not seen
	duplicates             int64
	serial                 uint64
	queuedNS               int64
	prev, next             *Flow
}

// direction says which way a packet goes, and whether it is one of the flow.
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

// firstTurn is the upper half of the first unwrapped number of a direction: it
// leaves room below.
const firstTurn = 1 << 32

// next is the unwrapped number next to which a wire number seq belongs.
func next(to uint64, seq uint32) uint64 {
	return to + uint64(int64(int32(seq-uint32(to))))
}

// unwrap extends a sequence number of a direction to 64 bits, next to what was
// seen last; 0 before the direction's first packet.
func (f *Flow) unwrap(dir uint8, seq uint32) uint64 {
	if f.streams[Up] != nil && f.streams[dir].started {
		return next(f.streams[dir].edge, seq)
	}
	if h := &f.half[dir]; h.synSeen {
		return next(firstTurn|uint64(h.isn), seq)
	}
	return 0
}

// Filled is the number of bytes of a direction that were never seen but are
// held as seen, to bound memory (see interval.MaxSpans).
func (f *Flow) Filled(dir uint8) int64 {
	if f.streams[Up] == nil {
		return 0
	}
	return int64(f.streams[dir].seen.Filled())
}

// Established says whether the TCP handshake ended well: the third ACK was
// seen, or what cannot come without it.
func (f *Flow) Established() bool {
	if f.streams[Up] == nil {
		return false
	}
	up, down := f.streams[Up], f.streams[Down]
	return f.ackNS != 0 || (up.windows > 0 && down.windows > 0) || up.carried() || down.carried()
}

// carried says whether payload was seen, and segments outside of the handshake.
func (s *stream) carried() bool { return s.windows > 0 && s.bytes > 0 }

// Closed is "fin" when both sides sent FIN, "rst" when a RST ended the flow
// before that, else "open".
func (f *Flow) Closed() string {
	switch {
	case f.reset:
		return "rst"
	case f.fins[Up] && f.fins[Down]:
		return "fin"
	}
	return "open"
}

// handshakeNS is the time from SYN to third ACK: one round trip wherever the
// capture was made. It is not known when SYN or SYN/ACK were sent again.
func (f *Flow) handshakeNS() (int64, bool) {
	if f.half[Up].opens() != 1 || f.half[Down].synAcks != 1 || f.ackNS == 0 || f.synNS == 0 {
		return 0, false
	}
	return f.ackNS - f.synNS, true
}
