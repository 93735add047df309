package anonymise

import (
	"encoding/binary"
	"fmt"

	"mplab/analysis/mptrace/packet"
)

const (
	etherARP   = 0x0806
	etherPPPoE = 0x8864 // session stage, RFC 2516 §4
)

// Frame replaces the addresses in a frame in place. It returns an error if the
// link type is unknown.
func (a *Addresses) Frame(linkType int, f []byte) error {
	header, typeAt := 0, 0
	switch linkType {
	case packet.LinkEthernet:
		a.field(f, 0, macSize)
		a.field(f, macSize, macSize)
		header, typeAt = 14, 12
	case packet.LinkSLL:
		a.station(f, 6, 4, 2)
		header, typeAt = 16, 14
	case packet.LinkSLL2:
		a.station(f, 12, 11, 1)
		header, typeAt = 20, 0
	case packet.LinkPPPSerial:
		if len(f) == 0 || (f[0] != 0x0f && f[0] != 0x8f) {
			a.ppp(f)
			return nil
		}
		header, typeAt = 4, 2 // Cisco's HDLC
	case packet.LinkPPP:
		a.ppp(f)
		return nil
	case packet.LinkPPPWithDir:
		a.ppp(tail(f, 1))
		return nil
	case packet.LinkNull, packet.LinkLoop:
		if ip := packet.IP(linkType, f); ip != nil {
			a.ip(ip)
		} else {
			clear(tail(f, 4))
		}
		return nil
	default:
		if !packet.KnownLink(linkType) {
			return fmt.Errorf("link type %d: the places of its addresses are not known", linkType)
		}
		a.ip(f)
		return nil
	}
	a.behindType(f, header, typeAt)
	return nil
}

// station replaces the address in a header of Linux cooked mode: a field of 8
// bytes, of which the number at sizeAt are used.
func (a *Addresses) station(f []byte, at, sizeAt, sizeBytes int) {
	size := 0
	for _, b := range f[min(sizeAt, len(f)):min(sizeAt+sizeBytes, len(f))] {
		size = size<<8 | int(b)
	}
	used := 0
	if size == macSize {
		a.field(f, at, macSize)
		used = macSize
	}
	clear(f[min(at+used, len(f)):min(at+8, len(f))])
}

// behindType replaces what follows the EtherType at typeAt.
func (a *Addresses) behindType(f []byte, header, typeAt int) {
	etherType, header := packet.EtherType(f, header, typeAt)
	if header < 0 {
		return
	}
	switch rest := f[header:]; etherType {
	case 0x0800, 0x86dd:
		a.ip(rest)
	case etherARP:
		a.arp(rest)
	case etherPPPoE:
		a.ppp(tail(rest, 6))
	default:
		clear(rest)
	}
}

// ppp replaces what follows a PPP header: address and control, which may be
// omitted, and the protocol in two bytes or, compressed, in one (RFC 1661 §2,
// RFC 1662 §3.1).
func (a *Addresses) ppp(b []byte) {
	if len(b) >= 2 && b[0] == 0xff && b[1] == 3 {
		b = b[2:]
	}
	if len(b) > 0 && b[0] == 0 {
		b = b[1:]
	}
	if len(b) > 0 && (b[0] == 0x21 || b[0] == 0x57) {
		a.ip(b[1:])
	} else {
		clear(b)
	}
}

// arp replaces the addresses of an ARP packet (RFC 826) for IPv4 over Ethernet.
func (a *Addresses) arp(b []byte) {
	const addresses, size = 8, 28
	if len(b) < size || binary.BigEndian.Uint32(b[2:]) != 0x0800_0604 {
		clear(tail(b, addresses))
		return
	}
	a.Replace(b[8:14])
	a.Replace(b[14:18])
	a.Replace(b[18:24])
	a.Replace(b[24:28])
	clear(b[size:])
}

// field replaces an address at an offset. If the frame ends in it, the rest of
// the frame becomes zeros.
func (a *Addresses) field(b []byte, at, size int) {
	if len(b) < at+size {
		clear(tail(b, at))
		return
	}
	a.Replace(b[at : at+size])
}

// tail returns what follows the first n bytes.
func tail(b []byte, n int) []byte { return b[min(n, len(b)):] }
