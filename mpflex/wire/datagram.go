package wire

import (
	"fmt"
	"net/netip"
)

// AppendDatagram appends what the payload of a datagram frame is to b: an
// address, which is the destination on the way up and the source on the way
// down, and the application's datagram. The zero address, without a datagram,
// ends the association.
func AppendDatagram(b []byte, addr netip.AddrPort, datagram []byte) []byte {
	return append(appendAddr(b, addr), datagram...)
}

// ParseDatagram is the reverse of AppendDatagram. The datagram is a part of b.
func ParseDatagram(b []byte) (addr netip.AddrPort, datagram []byte, err error) {
	addr, datagram, err = parseAddr(b)
	if err == nil && !addr.IsValid() && len(datagram) > 0 {
		err = fmt.Errorf("%w: a datagram without an address", ErrFormat)
	}
	return addr, datagram, err
}
