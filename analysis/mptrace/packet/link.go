package packet

import (
	"encoding/binary"
	"math"
)

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

// KnownLink reports whether frames of a link type can be decoded.
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

// Values of linkHeader that are not a length.
const (
	notIP   = -1
	tooLess = -2 // the frame ends too early to know
)

// Decode decodes one frame into p. origLen is the length of the frame on the
// wire. It does not change the fields that the caller sets (TimeNS, Iface); the
// others are only valid if the verdict is TCP.
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

// UsualLink returns the usual length of a link-layer header, and the place of
// the EtherType in it. For link types without such a field, the length exceeds
// that of every frame.
func UsualLink(linkType int) (length, typeAt int) {
	switch linkType {
	case LinkEthernet:
		return 14, 12
	case LinkSLL:
		return 16, 14
	case LinkSLL2:
		return 20, 0
	}
	return math.MaxInt, 0
}

// IsIP reports whether an EtherType is that of IPv4 or IPv6.
func IsIP(etherType uint16) bool { return etherType == etherIPv4 || etherType == etherIPv6 }

// IfIndex returns the interface index on the captured machine, which only
// frames of Linux cooked mode 2 contain.
func IfIndex(linkType int, frame []byte) (uint32, bool) {
	if linkType != LinkSLL2 || len(frame) < 8 {
		return 0, false
	}
	return binary.BigEndian.Uint32(frame[4:]), true
}

// IP returns the captured part of the IP packet in a frame, starting at its
// header, or nil. It checks nothing.
func IP(linkType int, frame []byte) []byte {
	header := linkHeader(linkType, frame)
	if header < 0 || len(frame) <= header {
		return nil
	}
	return frame[header:]
}

// linkHeader returns the length of everything before the IP header, or a
// negative value.
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
		return behindPPP(f, 1) // the first byte is the direction
	case LinkPPPSerial:
		if len(f) > 0 && (f[0] == 0x0f || f[0] == 0x8f) { // Cisco's HDLC
			return behindType(f, 4, 2)
		}
		return behindPPP(f, 0)
	}
	return notIP
}

// behindType reads the EtherType at typeAt of a header and skips VLAN tags and
// PPPoE.
func behindType(f []byte, header, typeAt int) int {
	etherType, header := EtherType(f, header, typeAt)
	switch {
	case header < 0 || etherType == etherIPv4 || etherType == etherIPv6:
		return header
	case etherType == etherPPPoE:
		return behindPPP(f, header+6)
	}
	return notIP
}

// EtherType reads the EtherType at typeAt of a header and skips VLAN tags. It
// returns the length of everything before the payload, which is negative if the
// frame ends too early.
func EtherType(f []byte, header, typeAt int) (etherType uint16, length int) {
	for len(f) >= header {
		switch etherType = binary.BigEndian.Uint16(f[typeAt:]); etherType {
		case 0x8100, 0x88a8, 0x9100:
			typeAt = header + 2
			header += 4
		default:
			return etherType, header
		}
	}
	return 0, tooLess
}

// behindPPP reads a PPP header at an offset: address and control, which may be
// omitted, and the protocol in two bytes or, compressed, in one (RFC 1661 §2,
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

// behindFamily reads the address family of a BSD loopback header. It is in the
// byte order of the capturing machine, and the number for IPv6 depends on the
// system.
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
