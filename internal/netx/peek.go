package netx

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// Peek waits until more than `known` bytes are available, the stream ends, or
// the deadline passes. It copies the available bytes into buffer without
// consuming them and returns their number: at most known if no more have
// arrived. It clears the read deadline.
func Peek(conn *net.TCPConn, buffer []byte, known int, deadline time.Time) int {
	raw, err := conn.SyscallConn()
	if err != nil || conn.SetReadDeadline(deadline) != nil {
		return 0
	}
	n := 0
	_ = raw.Read(func(fd uintptr) bool {
		for !failed(int(fd)) { // the error is left to the next reader
			got, _, err := unix.Recvfrom(int(fd), buffer, unix.MSG_PEEK|unix.MSG_DONTWAIT)
			switch {
			case err == unix.EINTR: //nolint:errorlint // a system call's own number
				continue
			case err == unix.EAGAIN: //nolint:errorlint // as above
				return false
			}
			n = max(got, 0)
			return err != nil || n == 0 || n > known || n == len(buffer)
		}
		return true
	})
	_ = conn.SetReadDeadline(time.Time{})
	return n
}

// AwaitData waits until a connection has bytes, an end or an error to be read,
// or its read deadline has passed. It consumes nothing.
func AwaitData(conn *net.TCPConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Read(func(fd uintptr) bool {
		var one [1]byte
		for !failed(int(fd)) {
			_, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
			if err != unix.EINTR { //nolint:errorlint // a system call's own number
				return err != unix.EAGAIN //nolint:errorlint // as above
			}
		}
		return true
	})
}
