package netx

import (
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Reader reads from a connection into memory that it requests only when data
// may be available. A waiting reader holds no memory.
type Reader struct{ raw syscall.RawConn }

// NewReader returns a reader for a connection.
func NewReader(conn *net.TCPConn) (*Reader, error) {
	raw, err := conn.SyscallConn()
	return &Reader{raw}, err
}

// Read waits for data and reads as much as is available and fits into the
// memory from take, with one system call. If no data was available after all,
// it calls giveBack and later take again. Read returns 0 and no error if take
// returns no memory. The end of the stream is io.EOF.
func (r *Reader) Read(take func() [][]byte, giveBack func()) (int, error) {
	var n int
	var failure error
	var none bool // take returned no memory
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
