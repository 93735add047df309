package packet

import "encoding/binary"

const protoUDP = 17

// Datagram returns the payload of a UDP datagram (RFC 768) over IPv4 or IPv6,
// and its source port. It returns false for any other frame, and for datagrams
// that are fragmented or incompletely captured. The payload points into the
// frame; no checksum is verified.
func Datagram(linkType int, frame []byte) (port uint16, payload []byte, ok bool) {
	b := IP(linkType, frame)
	if b == nil {
		return 0, nil, false
	}
	switch b[0] >> 4 {
	case 4:
		b = insideIPv4(b)
	case 6:
		b = insideIPv6(b)
	default:
		b = nil
	}
	if len(b) < 8 {
		return 0, nil, false
	}
	length := int(binary.BigEndian.Uint16(b[4:6]))
	if length < 8 || length > len(b) {
		return 0, nil, false
	}
	return binary.BigEndian.Uint16(b), b[8:length], true
}

// insideIPv4 returns the UDP datagram of a complete IPv4 packet, or nil.
func insideIPv4(b []byte) []byte {
	if len(b) < 20 {
		return nil
	}
	header, total := int(b[0]&15)*4, int(binary.BigEndian.Uint16(b[2:4]))
	fragment := binary.BigEndian.Uint16(b[6:8]) & 0x3fff
	if b[9] != protoUDP || fragment != 0 || header < 20 || total < header || total > len(b) {
		return nil
	}
	return b[header:total]
}

// insideIPv6 returns the UDP datagram of a complete IPv6 packet, after any
// extension headers, or nil. A packet with a fragment header that is not
// fragmented (RFC 6946) is accepted.
func insideIPv6(b []byte) []byte {
	if len(b) < 40 {
		return nil
	}
	total := 40 + int(binary.BigEndian.Uint16(b[4:6]))
	if total > len(b) {
		return nil
	}
	next, at := b[6], 40
	for at+8 <= total {
		size := (int(b[at+1]) + 1) * 8
		switch next {
		case protoUDP:
			return b[at:total]
		case protoHopByHop, protoRouting, protoDestOptions:
		case protoFragment:
			if binary.BigEndian.Uint16(b[at+2:])&^6 != 0 { // ignore two reserved bits
				return nil
			}
			size = 8
		case protoAuth:
			size = (int(b[at+1]) + 2) * 4
		default:
			return nil
		}
		next, at = b[at], at+size
	}
	return nil
}
