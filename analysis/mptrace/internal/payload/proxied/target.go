package proxied

import (
	"encoding/binary"
	"net/netip"
)

// Target is the destination of a proxied connection. Address or host may be
// missing.
type Target struct {
	Addr netip.Addr
	Host string
	Port uint16
}

// Known reports whether the target has an address or a host.
func (t Target) Known() bool { return t.Addr.IsValid() || t.Host != "" }

// Destination returns the address, or the host if there is no address.
func (t Target) Destination() string {
	if t.Addr.IsValid() {
		return t.Addr.String()
	}
	return t.Host
}

// named returns the target of a host name, which can be an address in text
// form.
func named(host string, port uint16) Target {
	if addr, err := netip.ParseAddr(host); err == nil {
		return Target{Addr: addr.Unmap(), Port: port}
	}
	return Target{Host: host, Port: port}
}

// isHost reports whether text can be a host name (letters, digits, dots,
// hyphens, underscores) or an IPv6 address.
func isHost(b []byte) bool {
	for _, c := range b {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '-', c == '_', c == ':':
		default:
			return false
		}
	}
	return len(b) > 0
}

// Types of addresses, RFC 1928 §5.
const (
	typeIPv4 = 1
	typeHost = 3
	typeIPv6 = 4
)

// address reads an address with its port in the form of RFC 1928 §5. size is 0
// if it is incomplete.
func address(b []byte) (t Target, size int, ok bool) {
	if len(b) < 2 {
		return t, 0, true
	}
	body := 0
	switch b[0] {
	case typeIPv4:
		size, body = 1+4+2, 4
	case typeIPv6:
		size, body = 1+16+2, 16
	case typeHost:
		size = 2 + int(b[1]) + 2
	default:
		return t, 0, false
	}
	if len(b) < size {
		return t, 0, true
	}
	port := binary.BigEndian.Uint16(b[size-2:])
	if body == 0 {
		host := b[2 : size-2]
		return named(string(host), port), size, isHost(host)
	}
	addr, _ := netip.AddrFromSlice(b[1 : 1+body])
	return Target{Addr: addr.Unmap(), Port: port}, size, true
}

// ShadowSocks reads the request at the start of a decoded ShadowSocks
// connection: 0x01 and an IPv4 address, 0x03 and a host, or 0x04 and an IPv6
// address, each with a port. The client of baerts2015 (§3.4.3) sent hosts with
// 0x04; this is accepted if b is exactly such a request. size is 0 if more
// bytes are needed; ok is false if b is not such a request.
func ShadowSocks(b []byte) (t Target, size int, ok bool) {
	if len(b) > 4 && b[0] == typeIPv6 && len(b) == 4+int(b[1]) && isHost(b[2:len(b)-2]) {
		return named(string(b[2:len(b)-2]), binary.BigEndian.Uint16(b[len(b)-2:])), len(b), true
	}
	if t, size, ok = address(b); !ok || size == 0 {
		return t, size, ok
	}
	return t, size, t.Port != 0
}
