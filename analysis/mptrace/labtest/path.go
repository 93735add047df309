package labtest

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Directions of a path.
const (
	Up   = 0 // client → server
	Down = 1
)

// Middlebox processes a frame, may change it, and returns the frame to forward;
// nil drops it. It is called from one goroutine per direction.
type Middlebox func(direction int, frame []byte) []byte

// Path relays the frames between two interfaces.
type Path struct {
	middlebox atomic.Pointer[Middlebox]
	delay     atomic.Int64 // ns, one way
	nsPerByte atomic.Int64
	queue     atomic.Int64 // limit in bytes
	sockets   [2]int
	stop      chan struct{}
	running   sync.WaitGroup
}

// Set replaces the middlebox; nil: none.
func (p *Path) Set(m Middlebox) {
	if m == nil {
		p.middlebox.Store(nil)
		return
	}
	p.middlebox.Store(&m)
}

// Shape sets one-way delay, rate in Mbit/s (0: unlimited) and queue size for
// both directions.
func (p *Path) Shape(delay time.Duration, mbits float64, queueBytes int) {
	p.delay.Store(int64(delay))
	p.queue.Store(int64(queueBytes))
	p.nsPerByte.Store(0)
	if mbits > 0 {
		p.nsPerByte.Store(int64(8e3 / mbits))
	}
}

const (
	longestFrame  = 1 << 14
	socketBuffer  = 8 << 20
	looksForClose = 50 * time.Millisecond
)

func newPath(air *Node, ends [2]string) (*Path, error) {
	p := &Path{stop: make(chan struct{}), sockets: [2]int{-1, -1}}
	var err error
	air.Do(func() {
		for i, name := range ends {
			if p.sockets[i], err = frames(name); err != nil {
				return
			}
		}
	})
	if err != nil {
		p.closeSockets()
		return nil, fmt.Errorf("relay between %s and %s: %w", ends[0], ends[1], err)
	}
	p.running.Add(4)
	for direction := range 2 {
		line := make(chan waiting, 1<<14)
		go p.receive(direction, line)
		go p.send(direction, line)
	}
	return p, nil
}

// frames opens a socket for all frames that an interface receives.
func frames(name string) (int, error) {
	iface, err := net.InterfaceByName(name)
	if err != nil {
		return -1, err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	timeout := unix.NsecToTimeval(int64(looksForClose))
	for _, err := range []error{
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: bigEndian(unix.ETH_P_ALL), Ifindex: iface.Index}),
	} {
		if err != nil {
			_ = unix.Close(fd)
			return -1, err
		}
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, socketBuffer)
	return fd, nil
}

func bigEndian(v uint16) uint16 { return v<<8 | v>>8 }

// waiting is a frame and its departure time.
type waiting struct {
	frame []byte
	due   time.Time
}

// receive passes frames through the middlebox and the bottleneck.
func (p *Path) receive(direction int, line chan<- waiting) {
	defer p.running.Done()
	defer close(line)
	buffer := make([]byte, longestFrame)
	var free time.Time // when the bottleneck becomes idle
	for !p.stopped() {
		n, _, err := unix.Recvfrom(p.sockets[direction], buffer, 0)
		if err != nil { // timeout, or the interface is down
			if err != unix.EAGAIN && err != unix.EINTR {
				time.Sleep(time.Millisecond)
			}
			continue
		}
		frame := append([]byte(nil), buffer[:n]...)
		if m := p.middlebox.Load(); m != nil {
			frame = (*m)(direction, frame)
		}
		if frame == nil {
			continue
		}
		if due, room := p.admit(&free, len(frame)); room {
			line <- waiting{frame, due}
		}
	}
}

// admit returns the time when a frame that arrives now has passed bottleneck
// and delay. It returns false if the queue is full.
func (p *Path) admit(free *time.Time, size int) (due time.Time, room bool) {
	now := time.Now()
	if free.Before(now) {
		*free = now
	}
	nsPerByte := p.nsPerByte.Load()
	if nsPerByte > 0 && int64(free.Sub(now)) > p.queue.Load()*nsPerByte {
		return due, false
	}
	*free = free.Add(time.Duration(nsPerByte * int64(size)))
	return free.Add(time.Duration(p.delay.Load())), true
}

func (p *Path) stopped() bool {
	select {
	case <-p.stop:
		return true
	default:
		return false
	}
}

func (p *Path) send(direction int, line <-chan waiting) {
	defer p.running.Done()
	for w := range line {
		if wait := time.Until(w.due); wait > 0 {
			time.Sleep(wait)
		}
		_ = unix.Send(p.sockets[1-direction], w.frame, 0) // an interface that is down loses its frames
	}
}

func (p *Path) close() {
	close(p.stop)
	p.running.Wait()
	p.closeSockets()
}

func (p *Path) closeSockets() {
	for _, fd := range p.sockets {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}
