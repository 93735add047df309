package netx

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// MaxDatagram is the size of the largest UDP datagram in bytes.
const MaxDatagram = 65535 - 8

// ErrWouldWait means that the socket's buffer is full and the datagram was not
// sent.
var ErrWouldWait = errors.New("the socket's send buffer is full")

// Datagrams is an unconnected UDP socket for any number of destinations, of
// both address families if the machine supports both. Sending never waits. An
// ICMP error about one destination does not affect the traffic with others.
type Datagrams struct {
	conn   *net.UDPConn
	raw    syscall.RawConn
	is6    bool // uses IPv4-mapped IPv6 addresses
	onICMP func(ICMPError)
}

// ICMPError is an ICMP error about a sent datagram.
type ICMPError struct {
	Destination netip.AddrPort // destination of the datagram
	Err         syscall.Errno  // such as ECONNREFUSED for a port without listener
}

// Error implements error.
func (e ICMPError) Error() string { return fmt.Sprintf("%s: %v", e.Destination, e.Err) }

// Unwrap returns the error number.
func (e ICMPError) Unwrap() error { return e.Err }

// OpenDatagrams opens a socket with the mark of the options. Send and Receive
// call onICMP for each ICMP error.
func (o Options) OpenDatagrams(ctx context.Context, onICMP func(ICMPError)) (*Datagrams, error) {
	conn, err := o.ListenUDP(ctx, netip.AddrPortFrom(netip.IPv4Unspecified(), 0)) // for both families
	if err != nil {
		return nil, err
	}
	d := &Datagrams{conn: conn, onICMP: onICMP}
	if d.raw, err = conn.SyscallConn(); err != nil {
		_ = conn.Close()
		return nil, err
	}
	var inner error
	err = d.raw.Control(func(fd uintptr) { inner = d.reportErrors(int(fd)) })
	if err := errors.Join(err, inner); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return d, nil
}

// reportErrors makes the kernel keep ICMP errors with their destination.
func (d *Datagrams) reportErrors(fd int) error {
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return fmt.Errorf("SO_DOMAIN: %w", err)
	}
	d.is6 = domain == unix.AF_INET6
	if err := unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_RECVERR, 1); err != nil {
		return fmt.Errorf("IP_RECVERR: %w", err)
	}
	if d.is6 {
		if err := unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_RECVERR, 1); err != nil {
			return fmt.Errorf("IPV6_RECVERR: %w", err)
		}
	}
	return nil
}

// Local returns the socket's local address.
func (d *Datagrams) Local() netip.AddrPort { return AddrPort(d.conn.LocalAddr()) }

// Send sends a datagram immediately, or returns ErrWouldWait if there is no
// room. Other errors are those of sendto(2), and net.ErrClosed. It is safe for
// concurrent use.
func (d *Datagrams) Send(datagram []byte, destination netip.AddrPort) error {
	sa := d.sockaddr(destination)
	err := d.sendto(datagram, sa)
	if err == nil || errors.Is(err, ErrWouldWait) || errors.Is(err, net.ErrClosed) {
		return err
	}
	// This can be the error of an earlier datagram; then this one was not sent.
	d.readErrors()
	return d.sendto(datagram, sa)
}

func (d *Datagrams) sendto(datagram []byte, sa unix.Sockaddr) error {
	var inner error
	err := d.raw.Write(func(fd uintptr) bool {
		inner = unix.Sendto(int(fd), datagram, unix.MSG_DONTWAIT, sa)
		return true
	})
	if errors.Is(inner, unix.EAGAIN) {
		return ErrWouldWait
	}
	return errors.Join(err, inner)
}

func (d *Datagrams) sockaddr(destination netip.AddrPort) unix.Sockaddr {
	if d.is6 {
		return &unix.SockaddrInet6{Port: int(destination.Port()), Addr: destination.Addr().As16()}
	}
	_, sa := sockaddr(destination)
	return sa
}

// buffers holds buffers for the largest datagram. A socket uses one only while
// it reads, so that thousands of idle sockets need little memory.
var buffers = sync.Pool{New: func() any { return new([MaxDatagram]byte) }}

// Receive waits for a datagram and passes it to take, with its source (IPv4 in
// 4-byte form). The datagram is valid until take returns. The error is
// os.ErrDeadlineExceeded or net.ErrClosed.
func (d *Datagrams) Receive(take func(datagram []byte, source netip.AddrPort)) error {
	for {
		var buffer *[MaxDatagram]byte
		var n int
		var from unix.Sockaddr
		var inner error
		err := d.raw.Read(func(fd uintptr) bool {
			buffer = buffers.Get().(*[MaxDatagram]byte)
			n, from, inner = unix.Recvfrom(int(fd), buffer[:], unix.MSG_DONTWAIT)
			if inner == nil {
				return true
			}
			buffers.Put(buffer)
			return !errors.Is(inner, unix.EAGAIN)
		})
		switch {
		case err != nil:
			return err
		case inner == nil:
			take(buffer[:n], addrPort(from))
			buffers.Put(buffer)
			return nil
		}
		if d.readErrors() == 0 {
			time.Sleep(time.Millisecond) // kernel out of memory, or another goroutine read the error
		}
	}
}

// readErrors reports all pending ICMP errors and returns their number.
func (d *Datagrams) readErrors() int {
	var errs []ICMPError
	_ = d.raw.Control(func(fd uintptr) {
		control := make([]byte, 512)
		for {
			_, n, _, from, err := unix.Recvmsg(int(fd), nil, control, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
			if err != nil {
				return
			}
			if errno, ok := parseICMP(control[:n]); ok {
				errs = append(errs, ICMPError{addrPort(from), errno})
			}
		}
	})
	for _, err := range errs {
		d.onICMP(err)
	}
	return len(errs)
}

// parseICMP returns the error number in the control message of an error queue
// (struct sock_extended_err, ip(7)).
func parseICMP(control []byte) (syscall.Errno, bool) {
	const extendedSize = 16
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0, false
	}
	for _, m := range messages {
		v4 := m.Header.Level == unix.SOL_IP && m.Header.Type == unix.IP_RECVERR
		v6 := m.Header.Level == unix.SOL_IPV6 && m.Header.Type == unix.IPV6_RECVERR
		if !v4 && !v6 || len(m.Data) < extendedSize {
			continue
		}
		origin := m.Data[4]
		if origin == unix.SO_EE_ORIGIN_ICMP || origin == unix.SO_EE_ORIGIN_ICMP6 {
			return syscall.Errno(binary.NativeEndian.Uint32(m.Data)), true
		}
	}
	return 0, false
}

func addrPort(sa unix.Sockaddr) netip.AddrPort {
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
	}
	return netip.AddrPort{}
}

// SetReadDeadline sets the read deadline as in net.Conn.
func (d *Datagrams) SetReadDeadline(deadline time.Time) error {
	return d.conn.SetReadDeadline(deadline)
}

// Close closes the socket and ends Receive.
func (d *Datagrams) Close() error { return d.conn.Close() }
