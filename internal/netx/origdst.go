package netx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrNotRedirected means that the connection was made to the listener itself,
// so it has no original destination.
var ErrNotRedirected = errors.New("the connection was not redirected: it has no destination but this listener")

// OriginalDestination returns the destination of a redirected connection before
// netfilter's redirect (SO_ORIGINAL_DST, IP6T_SO_ORIGINAL_DST).
func OriginalDestination(conn *net.TCPConn) (netip.AddrPort, error) {
	local := AddrPort(conn.LocalAddr())
	level := unix.SOL_IP
	if !local.Addr().Is4() {
		level = unix.SOL_IPV6
	}
	var raw unix.RawSockaddrInet6 // large enough for both families
	size := uint32(unsafe.Sizeof(raw))
	var inner error
	err := control(conn, func(fd int) {
		inner = getsockopt(fd, level, unix.SO_ORIGINAL_DST, unsafe.Pointer(&raw), &size)
	})
	if err := errors.Join(err, inner); err != nil {
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOPROTOOPT) {
			return netip.AddrPort{}, ErrNotRedirected
		}
		return netip.AddrPort{}, fmt.Errorf("SO_ORIGINAL_DST: %w", err)
	}
	dst, ok := parseSockaddr(unsafe.Slice((*byte)(unsafe.Pointer(&raw)), size))
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("SO_ORIGINAL_DST: unknown address family %d", raw.Family)
	}
	if dst == local {
		return netip.AddrPort{}, ErrNotRedirected
	}
	return dst, nil
}

// parseSockaddr reads a struct sockaddr_in or sockaddr_in6.
func parseSockaddr(b []byte) (netip.AddrPort, bool) {
	if len(b) < 8 {
		return netip.AddrPort{}, false
	}
	port := binary.BigEndian.Uint16(b[2:])
	switch family := binary.NativeEndian.Uint16(b); {
	case family == unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), port), true
	case family == unix.AF_INET6 && len(b) >= 24:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[8:24])).Unmap(), port), true
	}
	return netip.AddrPort{}, false
}

// getsockopt is the plain system call, because package unix has no function for
// arbitrary structures.
func getsockopt(fd, level, name int, value unsafe.Pointer, size *uint32) error {
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name),
		uintptr(value), uintptr(unsafe.Pointer(size)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
