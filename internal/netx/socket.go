package netx

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Errors of opening sockets. All are permanent: a retry does not help.
var (
	// ErrNoMultipath means that the kernel was built without MPTCP, or
	// net.mptcp.enabled is 0 in this network namespace.
	ErrNoMultipath = errors.New("the kernel offers no MPTCP here (built without it, or net.mptcp.enabled=0)")
	// ErrMark means that SO_MARK failed: it needs CAP_NET_ADMIN (or
	// CAP_NET_RAW) in the user namespace that owns the network namespace.
	ErrMark = errors.New("the mark cannot be set on a socket (CAP_NET_ADMIN is needed)")
	// ErrDevice means that SO_BINDTODEVICE failed: the interface is missing, or
	// the program lacks the permission.
	ErrDevice = errors.New("a socket cannot be bound to the device")
	// ErrCongestion means that TCP_CONGESTION failed: the algorithm is missing,
	// or it is not in net.ipv4.tcp_allowed_congestion_control and CAP_NET_ADMIN
	// is missing.
	ErrCongestion = errors.New("the congestion control cannot be set")
)

// Options are the socket options of all TCP sockets of a program.
type Options struct {
	Multipath  bool   // IPPROTO_MPTCP (RFC 8684) instead of IPPROTO_TCP
	Mark       int    // SO_MARK; 0: none
	Device     string // SO_BINDTODEVICE; "": none. With MPTCP only the first subflow is bound
	Congestion string // TCP_CONGESTION for all subflows; "": the system's default
}

// Probe opens and closes a socket with the options, so that a program can fail
// at its start instead of at its first connection.
func (o Options) Probe() error {
	// An MPTCP socket accepts any congestion control name until it has a
	// subflow (Linux 6.18), so test the name on a plain socket, too.
	for _, multipath := range []bool{false, o.Multipath} {
		o.Multipath = multipath
		fd, err := o.socket(unix.AF_INET)
		if err != nil {
			return err
		}
		if err := unix.Close(fd); err != nil {
			return err
		}
	}
	return nil
}

// socket opens a non-blocking stream socket and sets the options.
func (o Options) socket(family int) (int, error) {
	protocol := unix.IPPROTO_TCP
	if o.Multipath {
		protocol = unix.IPPROTO_MPTCP
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		if o.Multipath && missingProtocol(err) {
			return -1, fmt.Errorf("%w: %w", ErrNoMultipath, err)
		}
		return -1, fmt.Errorf("socket: %w", err)
	}
	if err := o.set(fd); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// set sets the options on an open socket.
func (o Options) set(fd int) error {
	if err := setMark(fd, o.Mark); err != nil {
		return err
	}
	if o.Device != "" {
		if err := unix.SetsockoptString(fd, unix.SOL_SOCKET, unix.SO_BINDTODEVICE, o.Device); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrDevice, o.Device, err)
		}
	}
	if err := setCongestion(fd, o.Congestion); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_TCP, unix.TCP_NODELAY, 1); err != nil {
		return fmt.Errorf("TCP_NODELAY: %w", err)
	}
	return nil
}

func setMark(fd, mark int) error {
	if mark == 0 {
		return nil
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, mark); err != nil {
		return fmt.Errorf("%w: %d: %w", ErrMark, mark, err)
	}
	return nil
}

func setCongestion(fd int, name string) error {
	if name == "" {
		return nil
	}
	if err := unix.SetsockoptString(fd, unix.SOL_TCP, unix.TCP_CONGESTION, name); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrCongestion, name, err)
	}
	return nil
}

// SetCongestion sets the congestion control of an open connection; with MPTCP,
// of all subflows.
func SetCongestion(conn *net.TCPConn, name string) error {
	var inner error
	err := control(conn, func(fd int) { inner = setCongestion(fd, name) })
	return errors.Join(err, inner)
}

// Congestion returns the current congestion control of a connection, or "" if
// it cannot be read.
func Congestion(conn *net.TCPConn) string {
	var name string
	_ = control(conn, func(fd int) {
		name, _ = unix.GetsockoptString(fd, unix.SOL_TCP, unix.TCP_CONGESTION)
	})
	return name
}

// ReceiveBuffer returns the current size of a connection's receive buffer in
// bytes (SO_RCVBUF; the kernel may increase it), or 0 if it cannot be read.
func ReceiveBuffer(conn *net.TCPConn) int {
	size := 0
	_ = control(conn, func(fd int) {
		size, _ = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	})
	return size
}

// Abort ends a connection with a reset instead of an orderly close, so that the
// peer cannot mistake a truncated transfer for a complete one. With MPTCP it is
// a fast close (RFC 8684 §3.5).
func Abort(conn interface {
	SetLinger(sec int) error
	Close() error
}) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}

// ReadNow reads the available bytes without waiting. It returns 0 if there are
// none, or if the connection has failed; the next read returns the error.
func ReadNow(conn *net.TCPConn, buffer []byte) int {
	var n int
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Read(func(fd uintptr) bool {
		if !failed(int(fd)) {
			n, err = unix.Read(int(fd), buffer)
		}
		return true
	})
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// failed reports whether a connection has a pending error. The kernel reports
// the error once; afterwards a reset looks like the end of the stream.
func failed(fd int) bool {
	state := [1]unix.PollFd{{Fd: int32(fd)}}
	n, _ := unix.Poll(state[:], 0)
	return n > 0 && state[0].Revents&unix.POLLERR != 0
}

// WasReset reports whether a connection was reset, if reading has ended but
// writing has not: another goroutine may have received the error. It is always
// false for MPTCP.
func WasReset(conn *net.TCPConn) bool {
	reset := false
	_ = control(conn, func(fd int) {
		const closed = 7 // TCP_CLOSE; a mere end of stream leads to TCP_CLOSE_WAIT
		if protocol, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL); err != nil || protocol != unix.IPPROTO_TCP {
			return
		}
		info, err := unix.GetsockoptTCPInfo(fd, unix.SOL_TCP, unix.TCP_INFO)
		reset = err == nil && info.State == closed
	})
	return reset
}

// control runs f with the descriptor of a connection.
func control(conn *net.TCPConn, f func(fd int)) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) { f(int(fd)) })
}

func missingProtocol(err error) bool {
	return errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.ENOPROTOOPT) || errors.Is(err, unix.EINVAL)
}

// sockaddr converts an address to the form of the system calls.
func sockaddr(addr netip.AddrPort) (family int, sa unix.Sockaddr) {
	ip := addr.Addr().Unmap()
	if ip.Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(addr.Port()), Addr: ip.As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(addr.Port()), Addr: ip.As16()}
}

// AddrPort returns the address of a TCP or UDP net.Addr, IPv4 in 4-byte form,
// or the zero AddrPort for other types.
func AddrPort(addr net.Addr) netip.AddrPort {
	var ap netip.AddrPort
	switch a := addr.(type) {
	case *net.TCPAddr:
		ap = a.AddrPort()
	case *net.UDPAddr:
		ap = a.AddrPort()
	default:
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
