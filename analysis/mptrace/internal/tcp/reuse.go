package tcp

import "mplab/analysis/mptrace/packet"

// reuseNS is the minimum time after which a SYN with the same number starts a
// new connection: after the last packet of a closed connection, or after the
// SYN of an established one.
const reuseNS = 1e9

// answerRange is the maximum distance of a SYN/ACK's acknowledgement above the
// SYN's number, because it also acknowledges payload of the SYN.
const answerRange = 1 << 16

// reusedBy reports whether p, a SYN, starts a new connection with the same
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
	case f.started(dir): // the SYN is late, or starts a new connection
		return p.Seq+1 != uint32(f.streams[dir].low)
	case f.streams != nil && f.streams[dir].ackKnown:
		return p.Seq+1 != f.streams[dir].firstACK
	}
	return false // simultaneous open
}

// started reports whether a direction sent segments outside the handshake.
func (f *Flow) started(dir uint8) bool { return f.streams != nil && f.streams[dir].started }

// plain reports whether a direction sent segments that are neither SYN nor RST.
func (f *Flow) plain(dir uint8) bool { return f.streams != nil && f.streams[dir].windows > 0 }
