package tcp

import (
	"mplab/analysis/mptrace/packet"
)

// A capture of several interfaces, or of one that packets pass twice, contains
// packets twice. A copy has all fields of the first packet, including the IPv4
// identification, which differs in a retransmission. Without an identification
// the rules are stricter. The copy must follow within a millisecond. Only
// segments that occupy sequence numbers are compared (equal acknowledgements
// can be intended). And the flow must have had copies before: a capture with
// copies contains the SYN twice, while on a short path a retransmission can be
// as quick.
const (
	copyNS       = 5e6
	copyNoIDNS   = 1e6
	recentLength = 4
)

// recent holds the last packets of a direction.
type recent struct {
	packets [recentLength]imprint
	at      uint8
}

// imprint holds the fields that distinguish a packet from others of its
// direction.
type imprint struct {
	timeNS       int64
	seqAck       uint64 // sequence number, acknowledgement
	stamps       uint64 // TSval, TSecr
	payload      uint32
	window       uint16 // in the order of packet.Packet, so that they are copied at once
	id, checksum uint16
	flags        uint8
}

func (r *recent) add(p *packet.Packet) {
	i := &r.packets[r.at%recentLength]
	r.at++
	i.timeNS = p.TimeNS
	i.seqAck, i.stamps = pair(p.Seq, p.Ack), pair(p.TSVal, p.TSEcr)
	i.window, i.id, i.checksum = p.Window, p.IPID, p.Checksum
	i.payload, i.flags = p.Payload, p.Flags
}

// resembles reports whether a packet without payload can be a copy of a recent
// one.
func (r *recent) resembles(seqAck uint64, id uint16) bool {
	for k := range r.packets {
		if i := &r.packets[k]; i.seqAck == seqAck && i.id == id {
			return true
		}
	}
	return false
}

func pair(high, low uint32) uint64 { return uint64(high)<<32 | uint64(low) }

// doubled reports whether the capture may contain packets of a direction twice.
func (f *Flow) doubled(dir uint8) bool { return f.duplicates > 0 || !f.half[dir].synSeen }

// holds reports whether p is a copy of a recent packet; see [Flow.doubled].
func (r *recent) holds(p *packet.Packet, doubled bool) bool {
	for k := range r.packets {
		i := &r.packets[k]
		if i.seqAck != pair(p.Seq, p.Ack) || i.payload != p.Payload || i.flags != p.Flags ||
			i.window != p.Window || i.timeNS == 0 {
			continue
		}
		if p.Has&packet.HasTimestamps != 0 && i.stamps != pair(p.TSVal, p.TSEcr) {
			continue
		}
		if isCopy(p, p.TimeNS-i.timeNS, i.id, i.checksum, doubled) {
			return true
		}
	}
	return false
}

// repeatsSYN reports whether p is a copy of the last SYN of its direction. In
// common systems, SYN/ACKs have no identification, and each SYN gets one
// SYN/ACK.
func (f *Flow) repeatsSYN(dir uint8, p *packet.Packet) bool {
	h, peer := &f.half[dir], &f.half[1-dir]
	if p.Flags&packet.ACK != 0 && p.IPID == 0 && h.synAcks < peer.opens() {
		return false
	}
	doubled := f.duplicates > 0 || h.syns == 1 // otherwise earlier packets had no copy
	return h.syns > 0 && p.Seq == h.isn && p.Flags == h.synFlags && isCopy(p, p.TimeNS-h.synNS, h.synID, h.synChecksum, doubled)
}

// isCopy compares fields that only copies have in common.
func isCopy(p *packet.Packet, sinceNS int64, id, checksum uint16, doubled bool) bool {
	if sinceNS < 0 || sinceNS > copyNS || id != p.IPID {
		return false
	}
	if p.Quirks&packet.IPv6 != 0 || p.IPID == 0 {
		if !doubled || sinceNS > copyNoIDNS || (p.Payload == 0 && p.Flags&packet.SYN == 0) {
			return false
		}
	}
	if checksum == p.Checksum {
		return true
	}
	offloaded := pseudoSum(p)
	return checksum == offloaded || p.Checksum == offloaded
}

// pseudoSum returns the sum over the pseudo header (RFC 9293 §3.1). It is in
// the checksum field if the network card computes the checksum.
func pseudoSum(p *packet.Packet) uint16 {
	const protoTCP, header = 6, 20
	sum := uint64(protoTCP) + header + uint64(len(p.Options)) + uint64(p.Payload)
	for _, a := range [...]packet.Addr{p.Src, p.Dst} {
		if p.Quirks&packet.IPv6 == 0 {
			a = packet.Addr{Lo: a.Lo & 0xffffffff}
		}
		for _, half := range [...]uint64{a.Hi, a.Lo} {
			sum += half>>48 + half>>32&0xffff + half>>16&0xffff + half&0xffff
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}
