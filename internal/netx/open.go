package netx

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// backlog is the backlog of listeners; the kernel limits it to
// net.core.somaxconn.
const backlog = 4096

// Dial opens a connection with the options. At the deadline or cancellation of
// ctx it returns an error that is os.ErrDeadlineExceeded or context.Canceled.
func (o Options) Dial(ctx context.Context, addr netip.AddrPort) (*net.TCPConn, error) {
	conn, err := o.dial(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", addr, err)
	}
	return conn, nil
}

func (o Options) dial(ctx context.Context, addr netip.AddrPort) (*net.TCPConn, error) {
	family, sa := sockaddr(addr)
	fd, err := o.socket(family)
	if err != nil {
		return nil, err
	}
	connecting := unix.Connect(fd, sa)
	file := os.NewFile(uintptr(fd), addr.String())
	defer file.Close() //nolint:errcheck // net.FileConn works on a copy
	if connecting != nil {
		if !errors.Is(connecting, unix.EINPROGRESS) {
			return nil, connecting
		}
		if err := waitConnected(ctx, file); err != nil {
			return nil, err
		}
	}
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// waitConnected waits until a non-blocking connect has completed.
func waitConnected(ctx context.Context, file *os.File) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := file.SetWriteDeadline(deadline); err != nil {
			return err
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = file.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()

	var result error
	err = raw.Write(func(fd uintptr) bool {
		code, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
		switch {
		case err != nil:
			result = err
		case code != 0:
			result = syscall.Errno(code)
		default:
			// No error: connected, or still connecting.
			_, peer := unix.Getpeername(int(fd))
			return peer == nil
		}
		return true
	})
	if err != nil {
		if cause := ctx.Err(); errors.Is(cause, context.Canceled) {
			return cause
		}
		return err
	}
	return result
}

// Listen opens a listening socket with the options.
func (o Options) Listen(addr netip.AddrPort) (*net.TCPListener, error) {
	family, sa := sockaddr(addr)
	fd, err := o.socket(family)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", addr, err)
	}
	file := os.NewFile(uintptr(fd), addr.String())
	defer file.Close() //nolint:errcheck // net.FileListener works on a copy
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return nil, fmt.Errorf("listening on %s: SO_REUSEADDR: %w", addr, err)
	}
	if err := unix.Bind(fd, sa); err != nil {
		return nil, fmt.Errorf("listening on %s: bind: %w", addr, err)
	}
	if err := unix.Listen(fd, backlog); err != nil {
		return nil, fmt.Errorf("listening on %s: listen: %w", addr, err)
	}
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", addr, err)
	}
	return listener.(*net.TCPListener), nil
}

// ListenUDP opens a UDP socket with the mark of the options. The other options
// do not apply to UDP.
func (o Options) ListenUDP(ctx context.Context, addr netip.AddrPort) (*net.UDPConn, error) {
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var inner error
		err := raw.Control(func(fd uintptr) { inner = setMark(int(fd), o.Mark) })
		return errors.Join(err, inner)
	}}
	conn, err := config.ListenPacket(ctx, "udp", addr.String())
	if err != nil {
		return nil, fmt.Errorf("listening on %s/udp: %w", addr, err)
	}
	return conn.(*net.UDPConn), nil
}
