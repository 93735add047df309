package ifaces

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// noticeGroups are the subscribed changes (rtnetlink(7)).
const noticeGroups = unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR | unix.RTMGRP_IPV4_ROUTE | unix.RTMGRP_IPV6_ROUTE

// noticeBuffer is the size of the socket's buffer in bytes, which the kernel
// doubles: room for a few notifications. More is unnecessary, because one
// notification is as good as many, and a lost one is harmless.
const noticeBuffer = 4096

// drainLimit is the maximum number of notifications discarded at once.
const drainLimit = 4096

// notices is a socket that becomes readable after a change. A nil one never
// does.
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

// wait waits for a notification and discards all pending ones. It returns
// os.ErrDeadlineExceeded at a non-zero time, and os.ErrClosed after close.
func (n *notices) wait(until time.Time) error {
	if err := n.file.SetReadDeadline(until); err != nil {
		return err
	}
	return n.take(false)
}

// drain discards the pending notifications.
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
			var buffer [1]byte // the content is not used
			_, _, err := unix.Recvfrom(int(fd), buffer[:], unix.MSG_DONTWAIT)
			switch {
			case errors.Is(err, unix.EAGAIN):
				return done
			case err == nil, errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.EINTR):
				done = true // ENOBUFS: notifications were lost, which counts as one
			default:
				failure = err
				return true
			}
		}
		return true
	})
	return errors.Join(err, failure)
}
