package wire

import (
	"fmt"
	"net/netip"
)

// AppendDatagram appends the payload of a datagram frame to b: an address and the
// application's datagram. The address is the destination on the way up, and the source
// on the way down. The zero address without a datagram ends the association.
func AppendDatagram(b []byte, addr netip.AddrPort, datagram []byte) []byte {
	return append(appendAddr(b, addr), datagram...)
}

// ParseDatagram is the inverse of AppendDatagram. datagram is a part of b.
func ParseDatagram(b []byte) (addr netip.AddrPort, datagram []byte, err error) {
	addr, datagram, err = parseAddr(b)
	if err == nil && !addr.IsValid() && len(datagram) > 0 {
		err = fmt.Errorf("%w: a datagram without an address", ErrFormat)
	}
	return addr, datagram, err
}
