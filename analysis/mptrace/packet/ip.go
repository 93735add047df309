package packet

import "encoding/binary"

const (
	protoHopByHop    = 0
	protoTCP         = 6
	protoRouting     = 43
	protoFragment    = 44
	protoAuth        = 51
	protoDestOptions = 60

	optionJumbo = 0xc2 // a hop-by-hop option
)

// mapped is the upper half of the low 64 bits of an IPv4-mapped address.
const mapped = 0xffff << 32

// decodePlain is the fast path for almost every packet: TCP over IPv4 without
// IP options, fragments or defects, captured to the end of the TCP options.
// wire is the length on the wire. For any other packet it returns false and
// changes nothing.
func decodePlain(b []byte, wire int, p *Packet) bool {
	if len(b) < 40 {
		return false
	}
	h := (*[40]byte)(b)
	total, options := int(binary.BigEndian.Uint16(h[2:4])), 20+int(h[32]>>4)*4
	if h[0] != 0x45 || h[9] != protoTCP || binary.BigEndian.Uint16(h[6:8])&0x3fff != 0 ||
		options < 40 || options > total || options > len(b) || total > wire {
		return false
	}
	p.Quirks = 0
	p.IPID, p.TTL = binary.BigEndian.Uint16(h[4:6]), h[8]
	p.Src = Addr{0, mapped | uint64(binary.BigEndian.Uint32(h[12:16]))}
	p.Dst = Addr{0, mapped | uint64(binary.BigEndian.Uint32(h[16:20]))}
	p.SrcPort, p.DstPort = binary.BigEndian.Uint16(h[20:22]), binary.BigEndian.Uint16(h[22:24])
	p.Seq, p.Ack = binary.BigEndian.Uint32(h[24:28]), binary.BigEndian.Uint32(h[28:32])
	p.Flags, p.Window = h[33], binary.BigEndian.Uint16(h[34:36])
	p.Checksum = binary.BigEndian.Uint16(h[36:38])
	p.Payload = uint32(total - options)
	p.Data = b[options:min(len(b), total)]
	p.parse(b[40:options])
	return true
}

// decodeIPv4 decodes an IPv4 packet. wire is its length on the wire. It is used
// if the total length is 0 (segmentation offload) or exceeds the frame
// (damage).
func decodeIPv4(b []byte, wire int, p *Packet) Verdict {
	if len(b) < 20 {
		return Truncated
	}
	h := (*[20]byte)(b)
	header := int(h[0]&15) * 4
	total := int(binary.BigEndian.Uint16(h[2:4]))
	damaged := total > wire
	if total == 0 || damaged {
		total = wire
	}
	if header < 20 || total < header {
		return Malformed
	}
	if h[9] != protoTCP {
		return Other
	}
	fragment := binary.BigEndian.Uint16(h[6:8])
	if fragment&0x1fff != 0 {
		return Fragment
	}
	if len(b) < header {
		return Truncated
	}
	p.Quirks = Quirk(fragment >> 13 & 1) // FirstFragment
	if damaged {
		p.Quirks |= LengthDamaged
	}
	p.IPID, p.TTL = binary.BigEndian.Uint16(h[4:6]), h[8]
	p.Src = Addr{0, mapped | uint64(binary.BigEndian.Uint32(h[12:16]))}
	p.Dst = Addr{0, mapped | uint64(binary.BigEndian.Uint32(h[16:20]))}
	return decodeTCP(b[header:], total-header, p)
}

// decodeIPv6 decodes an IPv6 packet and skips its extension headers. A payload
// length of 0 means a jumbogram (RFC 2675) or segmentation offload.
func decodeIPv6(b []byte, wire int, p *Packet) Verdict {
	if len(b) < 40 {
		return Truncated
	}
	h := (*[40]byte)(b)
	total := int(binary.BigEndian.Uint16(h[4:6])) + 40
	if total == 40 {
		total = max(wire, 40)
	}
	p.Src = Addr{binary.BigEndian.Uint64(h[8:16]), binary.BigEndian.Uint64(h[16:24])}
	p.Dst = Addr{binary.BigEndian.Uint64(h[24:32]), binary.BigEndian.Uint64(h[32:40])}
	p.Quirks, p.IPID, p.TTL = IPv6, 0, h[7]
	if h[6] != protoTCP {
		return decodeExtended(b, total, wire, p)
	}
	return decodeTCP(b[40:], p.within(total, wire)-40, p)
}

// within returns the length of a packet, limited to that of its frame.
func (p *Packet) within(total, wire int) int {
	if total > wire {
		p.Quirks |= LengthDamaged
	}
	return min(total, wire)
}

// decodeExtended decodes an IPv6 packet with extension headers.
func decodeExtended(b []byte, total, wire int, p *Packet) Verdict {
	next, at := b[6], 40
	for next != protoTCP {
		switch next {
		case protoHopByHop, protoRouting, protoDestOptions, protoFragment, protoAuth:
		default:
			return Other
		}
		if len(b) < at+8 {
			return Hidden
		}
		size := (int(b[at+1]) + 1) * 8
		switch next {
		case protoHopByHop:
			if jumbo := jumboLength(b[at+2 : min(len(b), at+size)]); jumbo > 0 && b[4]|b[5] == 0 {
				total = 40 + jumbo
			}
		case protoFragment:
			size = 8
			fragment := binary.BigEndian.Uint16(b[at+2:])
			if fragment&^7 != 0 {
				return laterFragment(b[at])
			}
			if fragment&1 != 0 {
				p.Quirks |= FirstFragment
			}
		case protoAuth:
			size = (int(b[at+1]) + 2) * 4
		}
		next = b[at]
		at += size
	}
	total = p.within(total, wire)
	if at > total {
		return Malformed
	}
	if at > len(b) {
		return Truncated
	}
	return decodeTCP(b[at:], total-at, p)
}

// laterFragment returns the verdict on a fragment, by the protocol that follows
// in its first fragment: Other if TCP cannot follow.
func laterFragment(next byte) Verdict {
	switch next {
	case protoTCP, protoRouting, protoDestOptions, protoAuth:
		return Fragment
	}
	return Other
}

// jumboLength returns the value of the jumbo payload option (RFC 2675 §2) in
// hop-by-hop options: the number of bytes after the IPv6 header, or 0.
func jumboLength(options []byte) int {
	for len(options) >= 2 {
		if options[0] == 0 { // one byte of padding
			options = options[1:]
			continue
		}
		size := 2 + int(options[1])
		if size > len(options) {
			return 0
		}
		if options[0] == optionJumbo && size == 6 {
			return int(binary.BigEndian.Uint32(options[2:]))
		}
		options = options[size:]
	}
	return 0
}

// decodeTCP decodes a TCP segment of length bytes; b is its captured part.
func decodeTCP(b []byte, length int, p *Packet) Verdict {
	if length < 20 {
		return Malformed
	}
	if len(b) < 20 {
		return Truncated
	}
	h := (*[20]byte)(b)
	header := int(h[12]>>4) * 4
	if header < 20 || header > length {
		return Malformed
	}
	p.SrcPort = binary.BigEndian.Uint16(h[0:2])
	p.DstPort = binary.BigEndian.Uint16(h[2:4])
	p.Seq = binary.BigEndian.Uint32(h[4:8])
	p.Ack = binary.BigEndian.Uint32(h[8:12])
	p.Flags = h[13]
	p.Window = binary.BigEndian.Uint16(h[14:16])
	p.Checksum = binary.BigEndian.Uint16(h[16:18])
	p.Payload = uint32(length - header)
	if header > len(b) {
		p.Quirks |= OptionsCut
		p.Data = nil
		p.parse(b[20:])
		return TCP
	}
	p.Data = b[header:min(len(b), length)]
	p.parse(b[20:header])
	return TCP
}
