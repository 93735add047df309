package tcp

import "mplab/analysis/mptrace/packet"

// reuseNS is how long after the last packet of a closed connection, or after the
// SYN of an established one, a SYN with the same number can no longer belong to it.
const reuseNS = 1e9

// answerRange is how far the acknowledgement of a SYN/ACK may lie above the
// SYN that it answers: payload of the SYN is acknowledged too.
const answerRange = 1 << 16

// reusedBy says whether p, a SYN, begins a later connection of the same
// 4-tuple.
func (f *Flow) reusedBy(p *packet.Packet, dir uint8) bool {
	if p.Flags&packet.RST != 0 {
		return false
	}
	if p.Flags&packet.ACK == 0 {
		return f.reopenedBy(p, dir)
	}
	mine, peer := &f.half[dir], &f.half[1-dir]
	if mine.synSeen && p.Seq == mine.isn {
		return false
	}
	answers := peer.synSeen && p.Ack-peer.isn-1 < answerRange
	if mine.synSeen || f.started(dir) {
		return !answers && (f.Established() || f.plain(dir))
	}
	return peer.synSeen && !answers && f.plain(1-dir)
}

// reopenedBy is reusedBy for a SYN without ACK.
func (f *Flow) reopenedBy(p *packet.Packet, dir uint8) bool {
	mine := &f.half[dir]
	switch {
	case mine.synSeen && p.Seq != mine.isn:
		return true
	case f.queue == closed && p.TimeNS-f.LastNS > reuseNS:
		return true
	case mine.synSeen:
		return f.Established() && p.TimeNS-mine.synNS > reuseNS
	case f.started(dir): // the SYN comes late, or begins anew
		return p.Seq+1 != uint32(f.streams[dir].low)
	case f.streams[Up] != nil && f.streams[dir].ackKnown:
		return p.Seq+1 != f.streams[dir].firstACK
	}
	return false // both sides open at once
}

// started says whether a direction sent segments outside of the handshake.
func (f *Flow) started(dir uint8) bool { return f.streams[Up] != nil && f.streams[dir].started }

// plain says whether a direction sent segments that are neither SYN nor RST.
func (f *Flow) plain(dir uint8) bool { return f.streams[Up] != nil && f.streams[dir].windows > 0 }
