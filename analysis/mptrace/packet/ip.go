package packet

import "encoding/binary"

const (
	protoHopByHop    = 0
	protoTCP         = 6
	protoRouting     = 43
	protoFragment    = 44
	protoAuth        = 51
	protoDestOptions = 60
)

// decodeIPv4 decodes an IPv4 packet; wire is its length on the wire, used
// when the total length is zero (a segmentation-offload packet).
func decodeIPv4(b []byte, wire int, p *Packet) Verdict {
	if len(b) < 20 {
		return Truncated
	}
	header := int(b[0]&15) * 4
	total := int(binary.BigEndian.Uint16(b[2:]))
	if total == 0 {
		total = wire
	}
	if header < 20 || total < header {
		return Malformed
	}
	if b[9] != protoTCP {
		return Other
	}
	fragment := binary.BigEndian.Uint16(b[6:])
	if fragment&0x1fff != 0 {
		return Fragment
	}
	p.FirstFragment = fragment&0x2000 != 0
	if len(b) < header {
		return Truncated
	}
	p.Src = Addr{10: 0xff, 11: 0xff, 12: b[12], 13: b[13], 14: b[14], 15: b[15]}
	p.Dst = Addr{10: 0xff, 11: 0xff, 12: b[16], 13: b[17], 14: b[18], 15: b[19]}
	return decodeTCP(b[header:], total-header, p)
}

// decodeIPv6 decodes an IPv6 packet and steps over its extension headers. A
// payload length of zero stands for a jumbo or segmentation-offload packet.
func decodeIPv6(b []byte, wire int, p *Packet) Verdict {
	if len(b) < 40 {
		return Truncated
	}
	total := int(binary.BigEndian.Uint16(b[4:])) + 40
	if total == 40 {
		total = wire
	}
	copy(p.Src[:], b[8:24])
	copy(p.Dst[:], b[24:40])
	p.FirstFragment = false
	next, at := b[6], 40
	for {
		switch next {
		case protoTCP:
			if at > total {
				return Malformed
			}
			if at > len(b) {
				return Truncated
			}
			return decodeTCP(b[at:], total-at, p)
		case protoHopByHop, protoRouting, protoDestOptions, protoFragment, protoAuth:
		default:
			return Other
		}
		if len(b) < at+8 {
			return Hidden
		}
		size := (int(b[at+1]) + 1) * 8
		switch next {
		case protoFragment:
			size = 8
			offset := binary.BigEndian.Uint16(b[at+2:])
			if offset&^7 != 0 {
				return Fragment
			}
			p.FirstFragment = offset&1 != 0
		case protoAuth:
			size = (int(b[at+1]) + 2) * 4
		}
		next = b[at]
		at += size
	}
}

// decodeTCP decodes a TCP segment of length bytes, of which b was captured.
func decodeTCP(b []byte, length int, p *Packet) Verdict {
	if length < 20 {
		return Malformed
	}
	if len(b) < 20 {
		return Truncated
	}
	header := int(b[12]>>4) * 4
	if header < 20 || header > length {
		return Malformed
	}
	p.SrcPort = binary.BigEndian.Uint16(b[0:])
	p.DstPort = binary.BigEndian.Uint16(b[2:])
	p.Seq = binary.BigEndian.Uint32(b[4:])
	p.Ack = binary.BigEndian.Uint32(b[8:])
	p.Flags = b[13]
	p.Window = binary.BigEndian.Uint16(b[14:])
	p.Payload = length - header
	p.OptionsCut = len(b) < header
	p.Options.parse(b[20:min(header, len(b))])
	return TCP
}
