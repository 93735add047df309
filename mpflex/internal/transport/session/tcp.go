package session

import (
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// deadTime is after how long without an acknowledgement TCP gives a path up.
const deadTime = 30 * time.Second

// Prepare sets what the connection of a path needs: it is silent when nothing
// is sent (TCP's own keep-alive would wake the radio), sends at once what it is
// given, and gives up when nobody acknowledges (RFC 5482).
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
