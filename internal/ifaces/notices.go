package ifaces

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// noticeGroups are the changes that are asked for (rtnetlink(7)).
const noticeGroups = unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR | unix.RTMGRP_IPV4_ROUTE | unix.RTMGRP_IPV6_ROUTE

// noticeBuffer is the size of the socket's buffer in bytes, of which the kernel
// makes double: a few notices. It need not hold more, for one says as much as
// many, and what does not fit costs nothing.
const noticeBuffer = 4096

// drainLimit bounds how many notices are thrown away in one go.
const drainLimit = 4096

// notices is a socket that becomes readable when something changed. A nil one
// never does.
type notices struct{ file *os.File }

func subscribe() (*notices, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("netlink: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, noticeBuffer); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("netlink: SO_RCVBUF: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: noticeGroups}); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("netlink: bind: %w", err)
	}
	return &notices{os.NewFile(uintptr(fd), "netlink")}, nil
}

func (n *notices) close() {
	if n != nil {
		_ = n.file.Close()
	}
}

// wait waits for a notice and takes all that are there. It ends with
// os.ErrDeadlineExceeded at a time that is not zero, and with os.ErrClosed after
// close.
func (n *notices) wait(until time.Time) error {
	if err := n.file.SetReadDeadline(until); err != nil {
		return err
	}
	return n.take(false)
}

// drain takes the notices that are there.
func (n *notices) drain() {
	if n != nil {
		_ = n.take(true)
	}
}

func (n *notices) take(mayBeNone bool) error {
	raw, err := n.file.SyscallConn()
	if err != nil {
		return err
	}
	var failure error
	err = raw.Read(func(fd uintptr) bool {
		done := mayBeNone
		for range drainLimit {
			var buffer [1]byte // what a notice says is not looked at
			_, _, err := unix.Recvfrom(int(fd), buffer[:], unix.MSG_DONTWAIT)
			switch {
			case errors.Is(err, unix.EAGAIN):
				return done
			case err == nil, errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.EINTR):
				done = true // ENOBUFS: some were lost, which is a notice, too
			default:
				failure = err
				return true
			}
		}
		return true
	})
	return errors.Join(err, failure)
}
