package packet

import "encoding/binary"

// Link types of pcap and pcapng, https://www.tcpdump.org/linktypes.html.
const (
	LinkNull     = 0
	LinkEthernet = 1
	LinkRawBSD   = 12
	LinkRawOpen  = 14
	LinkRaw      = 101
	LinkLoop     = 108
	LinkSLL      = 113
	LinkIPv4     = 228
	LinkIPv6     = 229
	LinkSLL2     = 276
)

// KnownLink says whether frames of a link type can be decoded.
func KnownLink(linkType int) bool {
	switch linkType {
	case LinkNull, LinkEthernet, LinkRawBSD, LinkRawOpen, LinkRaw, LinkLoop, LinkSLL, LinkIPv4, LinkIPv6, LinkSLL2:
		return true
	}
	return false
}

const (
	etherIPv4 = 0x0800
	etherIPv6 = 0x86dd
)

// Decode decodes one frame into p. origLen is the length that the frame had
// on the wire. Fields that the caller sets (TimeNS, Iface) are left alone.
func Decode(linkType int, frame []byte, origLen int, p *Packet) Verdict {
	header, ok := linkHeader(linkType, frame)
	if !ok {
		return Truncated
	}
	if header < 0 {
		return Other
	}
	if len(frame) <= header {
		return Truncated
	}
	if origLen < len(frame) {
		origLen = len(frame)
	}
	switch ip := frame[header:]; ip[0] >> 4 {
	case 4:
		return decodeIPv4(ip, origLen-header, p)
	case 6:
		return decodeIPv6(ip, origLen-header, p)
	}
	return Malformed
}

// linkHeader finds the length of everything before the IP header: −1 when the
// frame does not carry IP, and false when it is too short to tell.
func linkHeader(linkType int, f []byte) (int, bool) {
	switch linkType {
	case LinkEthernet:
		if len(f) < 14 {
			return 0, false
		}
		return etherType(f, 14, 12)
	case LinkRaw, LinkRawBSD, LinkRawOpen, LinkIPv4, LinkIPv6:
		return 0, true
	case LinkNull, LinkLoop:
		if len(f) < 4 {
			return 0, false
		}
		return nullFamily(f), true
	case LinkSLL:
		if len(f) < 16 {
			return 0, false
		}
		return etherType(f, 16, 14)
	case LinkSLL2:
		if len(f) < 20 {
			return 0, false
		}
		return etherType(f, 20, 0)
	}
	return -1, true
}

// etherType reads the EtherType at typeAt and steps over VLAN tags.
func etherType(f []byte, header, typeAt int) (int, bool) {
	for {
		switch binary.BigEndian.Uint16(f[typeAt:]) {
		case etherIPv4, etherIPv6:
			return header, true
		case 0x8100, 0x88a8, 0x9100:
			if len(f) < header+4 {
				return 0, false
			}
			typeAt = header + 2
			header += 4
		default:
			return -1, true
		}
	}
}

// nullFamily reads the address family of a BSD loopback header, which is in
// the byte order of the capturing machine; IPv6 has a number per system.
func nullFamily(f []byte) int {
	family := binary.LittleEndian.Uint32(f)
	if family > 0xffff {
		family = binary.BigEndian.Uint32(f)
	}
	switch family {
	case 2, 10, 24, 28, 30:
		return 4
	}
	return -1
}
