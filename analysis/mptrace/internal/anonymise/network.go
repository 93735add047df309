package anonymise

import "encoding/binary"

// Protocol numbers, https://www.iana.org/assignments/protocol-numbers.
const (
	protoHopByHop    = 0
	protoICMP        = 1
	protoIPv4        = 4
	protoTCP         = 6
	protoUDP         = 17
	protoIPv6        = 41
	protoRouting     = 43
	protoFragment    = 44
	protoICMPv6      = 58
	protoDestOptions = 60
	protoMobility    = 135
	unknown          = -1 // a later fragment, or a damaged header
)

const icmpRedirect = 5

// ip replaces an IP packet, with all packets that are directly in it. It does
// not recurse: a frame has room for thousands of headers.
func (a *Addresses) ip(b []byte) {
	for {
		version := byte(0)
		if len(b) > 0 {
			version = b[0] >> 4
		}
		protocol, sums := unknown, pseudo{}
		switch version {
		case 4:
			protocol, b, sums = a.ipv4Header(b)
		case 6:
			protocol, b, sums = a.ipv6Headers(b)
		}
		switch protocol {
		case protoIPv4, protoIPv6:
			continue
		case protoTCP:
			a.tcp(b, sums)
		case protoUDP:
			clear(tail(b, 6)) // checksum and payload
		case protoICMP:
			a.icmp(b)
		case protoICMPv6:
			icmpv6(b)
		default:
			clear(b)
		}
		return
	}
}

// ipv4Header replaces an IPv4 header. It returns the protocol, the bytes behind
// the header, and the sums of the pseudo header.
func (a *Addresses) ipv4Header(b []byte) (int, []byte, pseudo) {
	header := int(b[0]&15) * 4
	if header < 20 || len(b) < header {
		return unknown, tail(b, 10), pseudo{}
	}
	h := b[:header]
	valid := sum(h)%0xffff == 0
	sums := pseudo{old: sum(h[12:20]), size: int(binary.BigEndian.Uint16(h[2:])) - header}
	a.Replace(h[12:16])
	a.Replace(h[16:20])
	sums.replaced = sum(h[12:20])
	clear(h[20:])
	clear(h[10:12])
	if valid {
		binary.BigEndian.PutUint16(h[10:], uint16((0xffff-sum(h)%0xffff)%0xffff))
	}
	if binary.BigEndian.Uint16(h[6:])&0x1fff != 0 { // a later fragment
		return unknown, b[header:], sums
	}
	return int(h[9]), b[header:], sums
}

// ipv6Headers replaces an IPv6 header and its extension headers. It returns the
// same as ipv4Header.
func (a *Addresses) ipv6Headers(b []byte) (int, []byte, pseudo) {
	if len(b) < 40 {
		return unknown, tail(b, 8), pseudo{}
	}
	sums := pseudo{old: sum(b[8:40])}
	a.Replace(b[8:24])
	a.Replace(b[24:40])
	sums.replaced = sum(b[8:40])
	next, at := int(b[6]), 40
	for len(b) >= at+8 && isExtension(next) {
		header, kept := (int(b[at+1])+1)*8, 2
		following := int(b[at])
		switch next {
		case protoRouting:
			kept = 4 // type and number of segments
		case protoFragment:
			header, kept = 8, 8
			if binary.BigEndian.Uint16(b[at+2:])>>3 != 0 { // a later fragment
				following = unknown
			}
		}
		clear(b[at+kept : min(at+header, len(b))])
		next, at = following, at+header
	}
	sums.size = 40 + int(binary.BigEndian.Uint16(b[4:])) - at
	return next, tail(b, at), sums
}

func isExtension(protocol int) bool {
	switch protocol {
	case protoHopByHop, protoRouting, protoFragment, protoDestOptions, protoMobility:
		return true
	}
	return false
}

// icmp replaces an ICMP message. The second word of some types stays: an echo
// identifier, an MTU or a pointer.
func (a *Addresses) icmp(b []byte) {
	switch messageType(b) {
	case icmpRedirect:
		a.field(b, 4, 4)
	case 0, 3, 8, 11, 12:
	default:
		clear(tail(b, 4))
	}
	clearMessage(b)
}

// icmpv6 does the same for ICMPv6.
func icmpv6(b []byte) {
	switch messageType(b) {
	case 1, 2, 3, 4, 128, 129:
	default:
		clear(tail(b, 4))
	}
	clearMessage(b)
}

// messageType returns the type of an ICMP message, or unknown.
func messageType(b []byte) int {
	if len(b) == 0 {
		return unknown
	}
	return int(b[0])
}

// clearMessage clears the checksum of an ICMP message, and what follows its
// header.
func clearMessage(b []byte) {
	clear(tail(b[:min(len(b), 4)], 2))
	clear(tail(b, 8))
}
