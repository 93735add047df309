package packet

import (
	"encoding/binary"
	"slices"
)

const (
	protoIPv4 = 4
	protoIPv6 = 41
	protoGRE  = 47
	protoMPLS = 137

	portGTP    = 2152
	portTeredo = 3544
	portVXLAN  = 4789
	portGeneve = 6081

	etherBridged = 0x6558 // transparent Ethernet bridging, RFC 1701
)

// IP protocols and UDP ports of tunnels.
var (
	tunnelProtocols = []byte{protoIPv4, protoIPv6, protoGRE, protoMPLS}
	tunnelPorts     = []uint16{portGTP, portTeredo, portVXLAN, portGeneve}
)

// Tunnelled reports whether a frame without a TCP segment carries another
// packet in a tunnel or under MPLS labels. The inner packet is not decoded.
func Tunnelled(linkType int, frame []byte) bool {
	ip := IP(linkType, frame)
	if ip == nil {
		return linkType == LinkEthernet && len(frame) >= 14 && binary.BigEndian.Uint16(frame[12:])-etherMPLS < 2
	}
	protocol, inside := byte(0), []byte(nil)
	switch {
	case ip[0]>>4 == 4 && len(ip) >= 20:
		protocol, inside = ip[9], ip[min(len(ip), int(ip[0]&15)*4):]
	case ip[0]>>4 == 6 && len(ip) >= 40:
		outer := part{ip, len(ip)}
		protocol, _ = outer.skipIPv6()
		inside = outer.b
	}
	if protocol == protoUDP && len(inside) >= 4 {
		return slices.Contains(tunnelPorts, binary.BigEndian.Uint16(inside[2:]))
	}
	return slices.Contains(tunnelProtocols, protocol)
}

// Inner is a packet in a tunnel, as [Decode] takes it.
type Inner struct {
	LinkType int
	Frame    []byte // its captured part, within the outer frame
	OrigLen  int
}

// Untunnel returns the packet in a tunnel, without decoding it: VXLAN (RFC
// 7348), GRE (RFC 2784, RFC 2890), IP in IP (RFC 2003, RFC 2473, RFC 4213) or
// GTP-U (3GPP TS 29.281), with an IP packet or an Ethernet frame inside. It
// returns false for any other frame, for outer packets that are fragmented, and
// if the capture ends inside the headers of the tunnel. origLen is the length
// of the frame on the wire.
func Untunnel(linkType int, frame []byte, origLen int) (Inner, bool) {
	ip := IP(linkType, frame)
	if ip == nil {
		return Inner{}, false
	}
	outer := part{ip, max(origLen, len(frame)) - len(frame) + len(ip)}
	var protocol byte
	var ok bool
	switch ip[0] >> 4 {
	case 4:
		protocol, ok = outer.skipIPv4()
	case 6:
		protocol, ok = outer.skipIPv6()
	}
	if !ok {
		return Inner{}, false
	}
	switch protocol {
	case protoIPv4, protoIPv6:
		return outer.packet()
	case protoGRE:
		return outer.insideGRE()
	case protoUDP:
		return outer.insideUDP()
	}
	return Inner{}, false
}

// part is the rest of a frame after some headers: its captured bytes, and its
// length on the wire.
type part struct {
	b    []byte
	wire int
}

// skip removes a header. It returns false if the header is not complete.
func (p *part) skip(n int) bool {
	if n > len(p.b) || n > p.wire {
		return false
	}
	p.b, p.wire = p.b[n:], p.wire-n
	return true
}

// limit removes what follows the first n bytes, such as padding.
func (p *part) limit(n int) {
	p.wire = min(p.wire, n)
	p.b = p.b[:min(len(p.b), p.wire)]
}

// packet returns the rest as an IP packet.
func (p *part) packet() (Inner, bool) {
	if len(p.b) > 0 && p.b[0]>>4 != 4 && p.b[0]>>4 != 6 {
		return Inner{}, false
	}
	return Inner{LinkRaw, p.b, p.wire}, true
}

// ethernet returns the rest as an Ethernet frame.
func (p *part) ethernet() (Inner, bool) { return Inner{LinkEthernet, p.b, p.wire}, true }

func (p *part) skipIPv4() (protocol byte, ok bool) {
	if len(p.b) < 20 {
		return 0, false
	}
	h := (*[20]byte)(p.b)
	header, total := int(h[0]&15)*4, int(binary.BigEndian.Uint16(h[2:4]))
	if total > 0 { // 0: segmentation offload
		p.limit(total)
	}
	if fragment := binary.BigEndian.Uint16(h[6:8]) & 0x3fff; fragment != 0 || header < 20 {
		return 0, false
	}
	return h[9], p.skip(header)
}

func (p *part) skipIPv6() (next byte, ok bool) {
	if len(p.b) < 40 {
		return 0, false
	}
	next = p.b[6]
	if length := int(binary.BigEndian.Uint16(p.b[4:6])); length > 0 {
		p.limit(40 + length)
	}
	for ok = p.skip(40); ok; {
		if next != protoHopByHop && next != protoRouting && next != protoDestOptions {
			return next, true
		}
		if len(p.b) < 2 {
			return 0, false
		}
		next = p.b[0]
		ok = p.skip((int(p.b[1]) + 1) * 8)
	}
	return 0, false
}

// insideGRE skips the header of version 0 with its optional fields: checksum,
// key and sequence number. Source routes (RFC 1701) are not followed.
func (p *part) insideGRE() (Inner, bool) {
	if len(p.b) < 4 {
		return Inner{}, false
	}
	const checksum, routing, key, sequence, version = 0x8000, 0x4000, 0x2000, 0x1000, 7
	flags, protocol := binary.BigEndian.Uint16(p.b), binary.BigEndian.Uint16(p.b[2:])
	if flags&(routing|version) != 0 {
		return Inner{}, false
	}
	header := 4
	for _, field := range [...]uint16{checksum, key, sequence} {
		if flags&field != 0 {
			header += 4
		}
	}
	if !p.skip(header) {
		return Inner{}, false
	}
	switch protocol {
	case etherIPv4, etherIPv6:
		return p.packet()
	case etherBridged:
		return p.ethernet()
	}
	return Inner{}, false
}

func (p *part) insideUDP() (Inner, bool) {
	if len(p.b) < 8 {
		return Inner{}, false
	}
	port, length := binary.BigEndian.Uint16(p.b[2:]), int(binary.BigEndian.Uint16(p.b[4:]))
	if length > 0 { // 0: segmentation offload
		p.limit(length)
	}
	if !p.skip(8) || len(p.b) < 8 {
		return Inner{}, false
	}
	switch port {
	case portVXLAN:
		const known = 0x08 // the network identifier is valid
		if p.b[0]&known == 0 {
			return Inner{}, false
		}
		p.skip(8)
		return p.ethernet()
	case portGTP:
		return p.insideGTP()
	}
	return Inner{}, false
}

// insideGTP skips the header of a GTP-U message with user data, and its
// extension headers (3GPP TS 29.281 §5.1 and §5.2).
func (p *part) insideGTP() (Inner, bool) {
	const version, gtp, extension, optional, userData = 0xe0, 0x10, 0x04, 0x07, 255
	flags := p.b[0]
	if flags&(version|gtp) != 0x30 || p.b[1] != userData {
		return Inner{}, false
	}
	p.limit(8 + int(binary.BigEndian.Uint16(p.b[2:])))
	if !p.skip(8) {
		return Inner{}, false
	}
	if flags&optional == 0 {
		return p.packet()
	}
	if len(p.b) < 4 {
		return Inner{}, false
	}
	next := p.b[3]
	p.skip(4)
	for flags&extension != 0 && next != 0 {
		if len(p.b) == 0 {
			return Inner{}, false
		}
		size := int(p.b[0]) * 4
		if size == 0 || size > len(p.b) {
			return Inner{}, false
		}
		next = p.b[size-1]
		p.skip(size)
	}
	return p.packet()
}
