package netx

import (
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Reader reads from a connection into memory that it asks for when there may be
// something to read, not before: who waits holds none.
type Reader struct{ raw syscall.RawConn }

// NewReader returns a reader of a connection.
func NewReader(conn *net.TCPConn) (*Reader, error) {
	raw, err := conn.SyscallConn()
	return &Reader{raw}, err
}

// Read waits for bytes and reads as many as there are, and as fit into what take
// gives, by one system call. When nothing was there, it tells by giveBack, and
// take is called again later. Read returns 0 and no error when take gives no
// memory. The end of the stream is io.EOF.
func (r *Reader) Read(take func() [][]byte, giveBack func()) (int, error) {
	var n int
	var failure error
	var none bool // take gave no memory
	err := r.raw.Read(func(fd uintptr) bool {
		to := take()
		if none = len(to) == 0; none {
			failure = nil
			return true
		}
		for {
			n, failure = unix.Readv(int(fd), to)
			if failure != unix.EINTR {
				break
			}
		}
		if failure == unix.EAGAIN {
			giveBack()
			return false
		}
		return true
	})
	switch {
	case err != nil:
		return 0, err
	case failure != nil:
		return 0, os.NewSyscallError("readv", failure)
	case none:
		return 0, nil
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}
