package netx

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// State is the kernel's view of the sending side of a TCP connection (tcp(7):
// TCP_INFO, SIOCOUTQ). Sizes are in bytes, rates in bytes per second.
type State struct {
	RTT, Variation, MinRTT time.Duration // MinRTT: of the last minutes; 0 before the first sample
	MSS                    int
	Window                 int     // congestion window
	Flight                 int     // sent, neither acknowledged nor lost
	Unacked                int     // written and not acknowledged, sent or not
	Unsent                 int     // written and not sent
	Rate                   float64 // last delivery rate
	Pacing                 float64 // pacing rate, if congestion control paces
	RateLimited            bool    // the sender sent too little for Rate to show the capacity of the path
	Backoff                int     // number of doublings of the retransmission timer
	Recovering             bool    // in fast recovery or after a timeout
	Retransmitted          uint32
}

// Gauge reads the state of a connection. It is not safe for concurrent use.
type Gauge struct {
	raw   syscall.RawConn
	info  unix.TCPInfo
	queue int
	err   error
	read  func(fd uintptr)
}

// NewGauge returns a gauge of a connection that is not MPTCP.
func NewGauge(conn *net.TCPConn) (*Gauge, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	g := &Gauge{raw: raw}
	g.read = g.readFD
	return g, nil
}

func (g *Gauge) readFD(fd uintptr) {
	size := uint32(unsafe.Sizeof(g.info))
	if g.err = getsockopt(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO, unsafe.Pointer(&g.info), &size); g.err != nil {
		return
	}
	g.queue, g.err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ)
}

// Read returns the current state.
func (g *Gauge) Read() (State, error) {
	if err := g.raw.Control(g.read); err != nil {
		return State{}, err
	}
	if g.err != nil {
		return State{}, g.err
	}
	i := &g.info
	mss := int(i.Snd_mss)
	flight := int(i.Unacked) - int(i.Sacked) - int(i.Lost) + int(i.Retrans)
	s := State{
		RTT: microseconds(i.Rtt), Variation: microseconds(i.Rttvar), MSS: mss, Window: int(i.Snd_cwnd) * mss,
		Flight: max(0, flight) * mss, Unacked: g.queue, Unsent: int(i.Notsent_bytes), Rate: float64(i.Delivery_rate), Pacing: float64(i.Pacing_rate),
		RateLimited: appLimited(i), Backoff: int(i.Backoff), Recovering: i.Ca_state >= caRecovery, Retransmitted: i.Total_retrans,
	}
	if i.Min_rtt != 1<<32-1 {
		s.MinRTT = microseconds(i.Min_rtt)
	}
	return s, nil
}

// caRecovery is TCP_CA_Recovery; TCP_CA_Loss is greater.
const caRecovery = 3

// appLimited returns the bit field tcpi_delivery_rate_app_limited, which
// package unix omits: the lowest bit of the byte before tcpi_rto.
func appLimited(i *unix.TCPInfo) bool {
	return (*[unsafe.Offsetof(unix.TCPInfo{}.Rto)]byte)(unsafe.Pointer(i))[unsafe.Offsetof(unix.TCPInfo{}.Rto)-1]&1 != 0
}

func microseconds(n uint32) time.Duration { return time.Duration(n) * time.Microsecond }

// Gate limits the unsent data of a connection in the kernel: writers wait until
// less than a bound is unsent.
type Gate struct {
	conn *net.TCPConn
	raw  syscall.RawConn
	low  int
}

// NewGate returns a gate for a connection.
func NewGate(conn *net.TCPConn) (*Gate, error) {
	raw, err := conn.SyscallConn()
	return &Gate{conn: conn, raw: raw}, err
}

// Wait waits until fewer than bound bytes are unsent, but at most atMost (0: no
// limit). The kernel signals room after an acknowledgement, but not after
// pacing has made room.
func (g *Gate) Wait(bound int, atMost time.Duration) error {
	var failure error
	if atMost > 0 {
		if err := g.conn.SetWriteDeadline(time.Now().Add(atMost)); err != nil {
			return err
		}
	}
	err := g.raw.Write(func(fd uintptr) bool {
		if bound != g.low {
			// The kernel reports a socket as writable below half of this value.
			if failure = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, 2*bound); failure != nil {
				return true
			}
			g.low = bound
		}
		unsent, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQNSD)
		if err != nil {
			failure = err
			return true
		}
		if unsent < bound {
			return true
		}
		// Polling makes the kernel signal when the socket becomes writable.
		ready := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		n, _ := unix.Poll(ready[:], 0)
		return n > 0
	})
	if atMost > 0 {
		if cleared := g.conn.SetWriteDeadline(time.Time{}); cleared != nil {
			return cleared
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
	}
	if err != nil {
		return err
	}
	return failure
}

// SetSendBuffer sets a fixed send buffer size and returns its payload capacity
// in bytes. A size above net.core.wmem_max needs CAP_NET_ADMIN; without it, the
// buffer has the maximum permitted size.
func SetSendBuffer(conn *net.TCPConn, bytes int) (granted int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failure error
	err = raw.Control(func(fd uintptr) {
		if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, bytes) != nil {
			failure = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF, bytes)
		}
		if failure == nil {
			granted, failure = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF)
		}
	})
	return granted / 2, errors.Join(err, failure) // the kernel doubles the value for its bookkeeping (socket(7))
}

// pacedAtMost is a rate in bytes per second that no path of a phone reaches.
// Setting any maximum makes the kernel pace a connection (socket(7)).
const pacedAtMost = 4_000_000_000

// Pace makes the kernel spread the packets of a congestion window over a round
// trip, as BBR does by default. Otherwise a whole window would be sent at once
// after a pause, and short queues on the path would drop a part of it.
func Pace(conn *net.TCPConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	rate, failure := uint64(pacedAtMost), error(nil)
	err = raw.Control(func(fd uintptr) {
		_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE,
			uintptr(unsafe.Pointer(&rate)), unsafe.Sizeof(rate), 0)
		if errno != 0 {
			failure = errno
		}
	})
	return errors.Join(err, failure)
}
