package port

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"mplab/linkem/internal/exit"
	"mplab/linkem/internal/system"
	"mplab/linkem/model"
)

const (
	socketBuffer = 32 << 20 // requested size; an unprivileged user gets net.core.rmem_max and wmem_max
	largestFrame = model.VnetHeader + model.EthernetHeader + 256<<10
)

// Port is an interface of a link, opened to receive and send complete frames. Only the thread of its link uses it.
type Port struct {
	Name     string
	MTU      int
	Oversize uint64 // received frames larger than MTU; counted by the caller

	sender
	fd            int
	ring          *ring
	whole         []byte // for frames that do not fit into a slot of the ring
	kernelDropped uint64
}

// Open opens an interface with a receive ring, brings it up and makes it promiscuous.
func Open(name string) (*Port, error) {
	iface, err := net.InterfaceByName(name)
	if err != nil {
		return nil, exit.With(exit.MissingInterface, fmt.Errorf("interface %s does not exist in this network namespace", name))
	}
	if err := system.BringUp(name); err != nil {
		return nil, fmt.Errorf("interface %s: bring up: %w", name, err)
	}
	// Protocol 0 receives nothing before bind, so that no frame of another interface is received.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("interface %s: packet socket: %w (CAP_NET_RAW is needed: be root or use a user namespace)", name, err)
	}
	p := &Port{Name: name, MTU: iface.MTU, fd: fd, whole: make([]byte, largestFrame)}
	if err := p.setUp(iface.Index); err != nil {
		p.Close()
		return nil, fmt.Errorf("interface %s: %w", name, err)
	}
	return p, nil
}

func (p *Port) setUp(index int) error {
	for _, option := range []struct {
		name  string
		level int
		id    int
		value int
	}{
		{"PACKET_VERSION", unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V2},
		{"PACKET_VNET_HDR", unix.SOL_PACKET, optVnetHdr, 1},
		{"PACKET_COPY_THRESH", unix.SOL_PACKET, optCopyThresh, 1},
		{"PACKET_IGNORE_OUTGOING", unix.SOL_PACKET, optNoOutgoing, 1},
	} {
		err := unix.SetsockoptInt(p.fd, option.level, option.id, option.value)
		if err != nil && option.id != optNoOutgoing { // before Linux 4.20: outgoing frames are skipped when read
			return fmt.Errorf("set %s: %w", option.name, err)
		}
	}
	system.SetBuffers(p.fd, socketBuffer)
	ring, err := newRing(p.fd, p.MTU)
	if err != nil {
		return err
	}
	p.ring = ring
	p.init(p.fd)
	membership := unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_PROMISC}
	if err := unix.SetsockoptPacketMreq(p.fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &membership); err != nil {
		return fmt.Errorf("promiscuous mode: %w", err)
	}
	if err := unix.Bind(p.fd, &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_ALL), Ifindex: index}); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	return nil
}

// FD returns the file descriptor to poll for frames.
func (p *Port) FD() int { return p.fd }

// Next returns the oldest frame in the ring, or false. Call Done before the next call.
func (p *Port) Next() (Arrival, bool) { return p.ring.next() }

// Complete returns a complete frame, which may not fit into the ring: a virtio_net_hdr, then the frame. It is valid
// until Done. It returns false if the rest of the frame is lost; the frame then counts as dropped by the kernel.
func (p *Port) Complete(in Arrival) ([]byte, bool) {
	if !in.copied {
		return in.data, true
	}
	n, _, err := unix.Recvfrom(p.fd, p.whole, unix.MSG_DONTWAIT)
	if err != nil {
		p.kernelDropped++
		return nil, false
	}
	return p.whole[:n], true
}

// Done returns the memory of the last Next to the kernel.
func (p *Port) Done() { p.ring.done() }

// Dropped returns the number of frames that the kernel dropped since the start because the ring was full.
func (p *Port) Dropped() uint64 {
	// Reading the statistics resets them.
	if stats, err := unix.GetsockoptTpacketStats(p.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
		p.kernelDropped += uint64(stats.Drops)
	}
	return p.kernelDropped
}

// Troubled clears the pending error of the socket and returns it. An interface that has disappeared is an error; one
// that is down is not.
func (p *Port) Troubled() error {
	number, err := unix.GetsockoptInt(p.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return fmt.Errorf("interface %s: %w", p.Name, err)
	}
	if _, err := net.InterfaceByName(p.Name); err != nil {
		return fmt.Errorf("interface %s has disappeared", p.Name)
	}
	if errno := unix.Errno(number); number != 0 && !errors.Is(errno, unix.ENETDOWN) {
		return fmt.Errorf("interface %s: %w", p.Name, errno)
	}
	return nil
}

// Close closes the socket and the ring.
func (p *Port) Close() {
	if p.ring != nil {
		p.ring.close()
	}
	_ = unix.Close(p.fd)
}

// networkOrder converts v to network byte order, for a field that the kernel expects in that order.
func networkOrder(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}
