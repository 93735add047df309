package packet

import "encoding/binary"

// Link types of pcap and pcapng, https://www.tcpdump.org/linktypes.html.
const (
	LinkNull       = 0
	LinkEthernet   = 1
	LinkPPP        = 9
	LinkRawBSD     = 12
	LinkRawOpen    = 14
	LinkPPPSerial  = 50
	LinkRaw        = 101
	LinkLoop       = 108
	LinkSLL        = 113
	LinkPPPWithDir = 204
	LinkIPv4       = 228
	LinkIPv6       = 229
	LinkSLL2       = 276
)

// KnownLink says whether frames of a link type can be decoded.
func KnownLink(linkType int) bool {
	switch linkType {
	case LinkNull, LinkEthernet, LinkPPP, LinkRawBSD, LinkRawOpen, LinkPPPSerial, LinkRaw, LinkLoop, LinkSLL,
		LinkPPPWithDir, LinkIPv4, LinkIPv6, LinkSLL2:
		return true
	}
	return false
}

const (
	etherIPv4  = 0x0800
	etherIPv6  = 0x86dd
	etherPPPoE = 0x8864 // session stage, RFC 2516 §4
	etherMPLS  = 0x8847 // and 0x8848 for multicast
)

// What linkHeader returns instead of a length.
const (
	notIP   = -1
	tooLess = -2 // the frame ends before it can be known
)

// Decode decodes one frame into p. origLen is the length that the frame had
// on the wire. Fields that the caller sets (TimeNS, Iface) are left alone; the
// others mean nothing unless the verdict is TCP.
func Decode(linkType int, frame []byte, origLen int, p *Packet) Verdict {
	header := 14
	if linkType != LinkEthernet || len(frame) <= 14 || binary.BigEndian.Uint16(frame[12:14]) != etherIPv4 {
		if header = linkHeader(linkType, frame); header == notIP {
			return Other
		}
		if header == tooLess || len(frame) <= header {
			return Truncated
		}
	}
	ip := frame[header:]
	wire := max(origLen, len(frame)) - header
	if decodePlain(ip, wire, p) {
		return TCP
	}
	switch ip[0] >> 4 {
	case 4:
		return decodeIPv4(ip, wire, p)
	case 6:
		return decodeIPv6(ip, wire, p)
	}
	return Malformed
}

// IfIndex reads the number of the interface on the captured machine, which
// Linux cooked mode 2 tells with each frame; false when there is none.
func IfIndex(linkType int, frame []byte) (uint32, bool) {
	if linkType != LinkSLL2 || len(frame) < 8 {
		return 0, false
	}
	return binary.BigEndian.Uint32(frame[4:]), true
}

// IP finds the IP packet of a frame, from its header to where the capture of it
// ends; nil when there is none. Nothing of it is checked.
func IP(linkType int, frame []byte) []byte {
	header := linkHeader(linkType, frame)
	if header < 0 || len(frame) <= header {
		return nil
	}
	return frame[header:]
}

// linkHeader finds the length of everything before the IP header.
func linkHeader(linkType int, f []byte) int {
	switch linkType {
	case LinkEthernet:
		return behindType(f, 14, 12)
	case LinkSLL2:
		return behindType(f, 20, 0)
	case LinkSLL:
		return behindType(f, 16, 14)
	case LinkRaw, LinkRawBSD, LinkRawOpen, LinkIPv4, LinkIPv6:
		return 0
	case LinkNull, LinkLoop:
		return behindFamily(f)
	case LinkPPP:
		return behindPPP(f, 0)
	case LinkPPPWithDir:
		return behindPPP(f, 1) // a byte tells the direction
	case LinkPPPSerial:
		if len(f) > 0 && (f[0] == 0x0f || f[0] == 0x8f) { // Cisco's HDLC
			return behindType(f, 4, 2)
		}
		return behindPPP(f, 0)
	}
	return notIP
}

// behindType reads the EtherType at typeAt of a header and steps over VLAN tags
// and PPPoE.
func behindType(f []byte, header, typeAt int) int {
	for len(f) >= header {
		switch binary.BigEndian.Uint16(f[typeAt:]) {
		case etherIPv4, etherIPv6:
			return header
		case 0x8100, 0x88a8, 0x9100:
			typeAt = header + 2
			header += 4
		case etherPPPoE:
			return behindPPP(f, header+6)
		default:
			return notIP
		}
	}
	return tooLess
}

// behindPPP reads a PPP header at an offset: address and control, which may be
// left out, and the protocol in two bytes or, compressed, in one (RFC 1661 §2,
// RFC 1662 §3.1).
func behindPPP(f []byte, at int) int {
	if len(f) >= at+2 && f[at] == 0xff && f[at+1] == 3 {
		at += 2
	}
	if len(f) < at+2 {
		return tooLess
	}
	if f[at]&1 == 0 { // the first of two bytes is even
		if f[at] != 0 {
			return notIP
		}
		at++
	}
	if f[at] != 0x21 && f[at] != 0x57 {
		return notIP
	}
	return at + 1
}

// behindFamily reads the address family of a BSD loopback header, which is in
// the byte order of the capturing machine; IPv6 has a number per system.
func behindFamily(f []byte) int {
	if len(f) < 4 {
		return tooLess
	}
	family := binary.LittleEndian.Uint32(f)
	if family > 0xffff {
		family = binary.BigEndian.Uint32(f)
	}
	switch family {
	case 2, 10, 24, 28, 30:
		return 4
	}
	return notIP
}
