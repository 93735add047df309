package packet

import (
	"encoding/binary"
	"slices"
)

// IP protocols and UDP ports of tunnels.
var (
	tunnelProtocols = []byte{4, 41, 47, 137}           // IPv4, IPv6, GRE, MPLS in IP
	tunnelPorts     = []uint16{2152, 3544, 4789, 6081} // GTP-U, Teredo, VXLAN, Geneve
)

// Tunnelled reports whether a frame without a TCP segment carries another
// packet in a tunnel or under MPLS labels. The inner packet is not decoded.
func Tunnelled(linkType int, frame []byte) bool {
	ip := IP(linkType, frame)
	if ip == nil {
		return linkType == LinkEthernet && len(frame) >= 14 && binary.BigEndian.Uint16(frame[12:])-etherMPLS < 2
	}
	protocol, header := byte(0), 40
	switch {
	case ip[0]>>4 == 4 && len(ip) >= 20:
		protocol, header = ip[9], int(ip[0]&15)*4
	case ip[0]>>4 == 6 && len(ip) >= 40:
		protocol = ip[6]
	}
	if protocol == protoUDP && len(ip) >= header+4 {
		return slices.Contains(tunnelPorts, binary.BigEndian.Uint16(ip[header+2:]))
	}
	return slices.Contains(tunnelProtocols, protocol)
}
