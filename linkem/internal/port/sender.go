package port

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"mplab/linkem/model"
)

const sendBatch = 64 // frames per sendmmsg

// mmsghdr is struct mmsghdr of recvmmsg(2) and sendmmsg(2).
type mmsghdr struct {
	header unix.Msghdr
	length uint32
	_      [4]byte
}

// sender sends batches of frames on a packet socket.
type sender struct {
	fd       int
	messages [sendBatch]mmsghdr
	vectors  [sendBatch]unix.Iovec
	frames   [sendBatch]*model.Frame
	count    int
}

func (s *sender) init(fd int) {
	s.fd = fd
	for i := range s.messages {
		s.messages[i].header.Iov = &s.vectors[i]
		s.messages[i].header.SetIovlen(1)
	}
}

// Add adds a frame to the batch, which must not be full.
func (s *sender) Add(f *model.Frame) {
	s.frames[s.count] = f
	s.vectors[s.count].Base = &f.Data[0]
	s.vectors[s.count].SetLen(len(f.Data))
	s.count++
}

// Full reports whether the batch must be flushed before the next Add.
func (s *sender) Full() bool { return s.count == sendBatch }

// Flush sends the batch and reports to d for each frame whether it was sent. It never waits: a frame that the kernel
// does not accept immediately has failed. It returns the last error, or 0.
func (s *sender) Flush(d *model.Direction) unix.Errno {
	var last unix.Errno
	for at := 0; at < s.count; {
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.messages[at])),
			uintptr(s.count-at), unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			for range n {
				d.Sent(s.frames[at])
				at++
			}
		case unix.EINTR:
		default: // the error concerns the first frame
			last = errno
			d.SendFailed(s.frames[at])
			at++
		}
	}
	clear(s.frames[:s.count])
	s.count = 0
	return last
}
