package model

import "encoding/binary"

const (
	protocolTCP = 6
	protocolUDP = 17
)

// flowOf returns a hash of a frame's addresses, protocol and, for unfragmented TCP and UDP, ports. All frames that are
// not IP are one flow. The same flow always has the same hash.
func flowOf(f *Frame) uint32 {
	packet := f.Data[min(VnetHeader+EthernetHeader, len(f.Data)):]
	if !f.ip || len(packet) == 0 {
		return 0
	}
	var addresses, ports []byte
	var protocol byte
	switch {
	case packet[0]>>4 == 4 && len(packet) >= 20:
		addresses, protocol = packet[12:20], packet[9]
		if fragment := binary.BigEndian.Uint16(packet[6:]) & 0x3fff; fragment == 0 {
			ports = portsAt(packet, int(packet[0]&15)*4, protocol)
		}
	case packet[0]>>4 == 6 && len(packet) >= 40:
		addresses, protocol = packet[8:40], packet[6]
		ports = portsAt(packet, 40, protocol)
	default:
		return 0
	}
	// FNV-1a; fold the upper bits into the lower ones, which are used.
	hash := uint32(2166136261)
	for _, part := range [][]byte{addresses, {protocol}, ports} {
		for _, b := range part {
			hash = (hash ^ uint32(b)) * 16777619
		}
	}
	return hash ^ hash>>16
}

// portsAt returns the ports of a TCP or UDP header at an offset, or nil.
func portsAt(packet []byte, at int, protocol byte) []byte {
	if protocol != protocolTCP && protocol != protocolUDP || len(packet) < at+4 {
		return nil
	}
	return packet[at : at+4]
}
