package socks

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// Address is an endpoint of a connection or a datagram: an IP address or a domain, and
// a port. Package socks does not resolve the domain.
type Address struct {
	IP     netip.Addr // IPv4 in its 4-byte form; the zero Addr if there is a domain
	Domain string     // printable ASCII, 1 to 255 bytes
	Port   uint16
}

// FromAddrPort returns the Address of an IP address and port.
func FromAddrPort(a netip.AddrPort) Address {
	return Address{IP: a.Addr().Unmap().WithZone(""), Port: a.Port()}
}

// AddrPort returns IP and port, or the zero AddrPort if there is a domain.
func (a Address) AddrPort() netip.AddrPort {
	if !a.IP.IsValid() {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a.IP, a.Port)
}

// String returns "host:port".
func (a Address) String() string {
	host := a.Domain
	if a.IP.IsValid() {
		host = a.IP.String()
	}
	return net.JoinHostPort(host, strconv.Itoa(int(a.Port)))
}

// Kinds of addresses (RFC 1928 §5).
const (
	kindIPv4   = 1
	kindDomain = 3
	kindIPv6   = 4
)

const (
	maxDomain = 255
	// maxAddress is the maximum size of an encoded address in bytes.
	maxAddress = 1 + 1 + maxDomain + 2
)

// append appends the encoded address to b. The zero Address is encoded as 0.0.0.0.
func (a Address) append(b []byte) []byte {
	switch {
	case a.Domain != "":
		b = append(b, kindDomain, byte(len(a.Domain)))
		b = append(b, a.Domain...)
	case a.IP.Is6():
		b = append(b, kindIPv6)
		b = append(b, a.IP.AsSlice()...)
	case a.IP.Is4():
		b = append(b, kindIPv4)
		b = append(b, a.IP.AsSlice()...)
	default:
		b = append(b, kindIPv4, 0, 0, 0, 0)
	}
	return binary.BigEndian.AppendUint16(b, a.Port)
}

// addressSize returns the size of an encoded address, given its first two bytes.
func addressSize(kind, first byte) (int, error) {
	switch kind {
	case kindIPv4:
		return 1 + 4 + 2, nil
	case kindIPv6:
		return 1 + 16 + 2, nil
	case kindDomain:
		return 1 + 1 + int(first) + 2, nil
	}
	return 0, fmt.Errorf("%w: %d", ErrAddressType, kind)
}

// parseAddress decodes the address at the start of b and returns the rest.
func parseAddress(b []byte) (Address, []byte, error) {
	if len(b) < 2 {
		return Address{}, nil, fmt.Errorf("%w: address cut short", ErrFormat)
	}
	size, err := addressSize(b[0], b[1])
	if err != nil {
		return Address{}, nil, err
	}
	if len(b) < size {
		return Address{}, nil, fmt.Errorf("%w: address cut short", ErrFormat)
	}
	host, port := b[1:size-2], binary.BigEndian.Uint16(b[size-2:])
	if b[0] == kindDomain {
		a, err := ParseHost(string(host[1:]), port)
		return a, b[size:], err
	}
	ip, _ := netip.AddrFromSlice(host) // 4 or 16 bytes
	return Address{IP: ip.Unmap(), Port: port}, b[size:], nil
}

// ParseHost returns the Address of a domain. A domain that is an IP address becomes an
// IP address, so that rules for addresses apply. The error is ErrFormat.
func ParseHost(domain string, port uint16) (Address, error) {
	if domain == "" || len(domain) > maxDomain {
		return Address{}, fmt.Errorf("%w: a domain of %d bytes", ErrFormat, len(domain))
	}
	for i := range len(domain) {
		if domain[i] <= ' ' || domain[i] > '~' {
			return Address{}, fmt.Errorf("%w: the domain %q", ErrFormat, domain)
		}
	}
	if ip, err := netip.ParseAddr(domain); err == nil && ip.Zone() == "" {
		return Address{IP: ip.Unmap(), Port: port}, nil
	}
	return Address{Domain: domain, Port: port}, nil
}
