package session

import (
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// deadTime is how long TCP waits for an acknowledgement before it ends a path.
const deadTime = 30 * time.Second

// Prepare sets the socket options of a path: no keep-alive by TCP (it would wake the
// radio), no delay of small segments, and an end after deadTime without an
// acknowledgement (RFC 5482).
func Prepare(conn *net.TCPConn) error {
	if err := conn.SetKeepAlive(false); err != nil {
		return err
	}
	if err := conn.SetNoDelay(true); err != nil {
		return err
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failure error
	err = raw.Control(func(fd uintptr) {
		failure = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(deadTime.Milliseconds()))
	})
	if err == nil && failure != nil {
		err = fmt.Errorf("TCP_USER_TIMEOUT: %w", failure)
	}
	return err
}
