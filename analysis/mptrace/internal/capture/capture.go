package capture

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Errors of [Open], by the action that the user can take.
var (
	ErrInterface  = errors.New("interface")
	ErrExists     = errors.New("the file exists already; raw captures are written once")
	ErrPermission = errors.New("no permission to capture: run as root, in a network namespace of your own, " +
		"or after `setcap cap_net_raw+ep` on this program")
)

// MaxSnapLen is the maximum number of bytes kept of a packet.
const MaxSnapLen = blockSize - 1<<10

// Options of a capture.
type Options struct {
	Interface   string
	Name        string // name of the interface in the file; "": its system name
	File        string
	Payload     bool   // keep whole packets instead of headers only
	SnapLen     uint32 // 0: MaxSnapLen
	Application string // program name in the file
}

// Capture is a running capture.
type Capture struct {
	ring   *ring
	file   *os.File
	out    *Writer
	stop   [2]int // pipe; closing its write end wakes the reader
	start  int64
	frames uint64
	notice func(string)
}

// Hardware types, linux/if_arp.h.
const (
	hwEther    = 1
	hwLoopback = 772
	hwTunnel   = 768
	hwSit      = 776
	hwRawIP    = 519
	hwNone     = 0xfffe
)

// Open opens interface and file. The kernel queues packets from then on.
func Open(o Options, notice func(string)) (*Capture, error) {
	iface, err := net.InterfaceByName(o.Interface)
	if err != nil {
		return nil, fmt.Errorf("%w %s: no such interface; there are %s", ErrInterface, o.Interface, interfaceNames())
	}
	hardware, err := linkType(o.Interface)
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrInterface, o.Interface, err)
	}
	want := filterOptions{ethernet: true, payload: o.Payload, snapLen: o.SnapLen, dropOutgoing: hardware == hwLoopback}
	link := uint16(1) // LINKTYPE_ETHERNET
	switch hardware {
	case hwEther, hwLoopback:
	case hwNone, hwRawIP, hwTunnel, hwSit:
		want.ethernet, link = false, 101 // LINKTYPE_RAW
	default:
		return nil, fmt.Errorf("%w %s: unsupported hardware type %d", ErrInterface, o.Interface, hardware)
	}
	if want.snapLen == 0 || want.snapLen > MaxSnapLen {
		want.snapLen = MaxSnapLen
	}
	program, err := filter(want)
	if err != nil {
		return nil, err
	}
	c := &Capture{notice: notice, start: time.Now().UnixNano()}
	if c.ring, err = openRing(iface, program); err != nil {
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
			return nil, ErrPermission
		}
		return nil, fmt.Errorf("%w %s: %w", ErrInterface, o.Interface, err)
	}
	if err = c.create(o, link, want.snapLen); err != nil {
		c.ring.close()
		return nil, err
	}
	if err = unix.Pipe2(c.stop[:], unix.O_CLOEXEC); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *Capture) create(o Options, link uint16, snapLen uint32) error {
	file, err := os.OpenFile(o.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		if errors.Is(err, os.ErrExist) {
			return fmt.Errorf("%s: %w", o.File, ErrExists)
		}
		return err
	}
	c.file = file
	c.out, err = NewWriter(file, Description{
		Interface: cmp.Or(o.Name, o.Interface), LinkType: link, SnapLen: snapLen, OS: system(), Application: o.Application,
	})
	if err != nil {
		_ = file.Close()
		return fmt.Errorf("%s: %w", o.File, err)
	}
	return nil
}

// Stop ends Run; packets queued before are still written. Call it once.
func (c *Capture) Stop() { _ = unix.Close(c.stop[1]) }

// Run captures until Stop, or until the file cannot be written. It returns the
// number of packets written and the number that the kernel dropped.
func (c *Capture) Run() (packets, dropped uint64, err error) {
	defer c.close()
	for stopped := false; !stopped; {
		if stopped, err = c.turn(); err != nil {
			return c.frames, c.ring.dropped, c.explain(err)
		}
	}
	if err = c.drain(); err == nil {
		err = c.out.Statistics(c.start, time.Now().UnixNano(), c.ring.received, c.ring.dropped)
	}
	return c.frames, c.ring.dropped, c.explain(err)
}

// explain adds the file name to an error.
func (c *Capture) explain(err error) error {
	if err == nil {
		return nil
	}
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("%s: %w; the capture ended; the packets before are valid", c.file.Name(), err)
}

// turn waits for packets and writes them. It returns true when the capture must
// stop.
func (c *Capture) turn() (bool, error) {
	if err := c.ring.wait(c.stop[0], time.Second); err != nil {
		// A phone's interfaces come and go: the socket stays bound.
		c.notice(fmt.Sprintf("interface: %v; the capture continues", err))
	}
	for {
		more, err := c.ring.read(c.write)
		if err != nil {
			return false, err
		}
		if !more {
			break
		}
	}
	if err := c.ring.count(); err != nil {
		return false, err
	}
	return c.stopped(), c.out.Flush()
}

func (c *Capture) stopped() bool {
	fds := []unix.PollFd{{Fd: int32(c.stop[0]), Events: unix.POLLIN}}
	n, _ := unix.Poll(fds, 0)
	return n > 0
}

// drain blocks new packets and writes every packet that was queued before.
func (c *Capture) drain() error {
	if err := c.ring.stop(); err != nil {
		return err
	}
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		more, err := c.ring.read(c.write)
		if err != nil {
			return err
		}
		if more {
			continue
		}
		if err := c.ring.count(); err != nil {
			return err
		}
		if c.frames+c.ring.dropped >= c.ring.received {
			return nil
		}
		time.Sleep(retireMS / 4 * time.Millisecond)
	}
	return nil
}

func (c *Capture) write(f *frame) error {
	c.frames++
	if f.vlan == nil || len(f.data) < 12 {
		return c.out.Packet(f.timeNS, f.data, nil, f.origLen)
	}
	head := make([]byte, 0, 16)
	head = append(append(head, f.data[:12]...), f.vlan...)
	return c.out.Packet(f.timeNS, head, f.data[12:], f.origLen+4)
}

func (c *Capture) close() {
	c.ring.close()
	_ = c.file.Close()
	_ = unix.Close(c.stop[0])
}

func interfaceNames() string {
	all, _ := net.Interfaces()
	names := ""
	for i, one := range all {
		if i > 0 {
			names += ", "
		}
		names += one.Name
	}
	return names
}

func system() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "Linux"
	}
	return "Linux " + unix.ByteSliceToString(u.Release[:])
}
