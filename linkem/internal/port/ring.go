package port

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"mplab/linkem/model"
)

// Receive ring. Its memory does not count against net.core.rmem_max, so it can be large in a user namespace too.
const (
	ringBytes     = 8 << 20 // per interface; 4096 full Ethernet frames, a third of a second at 150 Mbit/s
	ringBlock     = 64 << 10
	ringFrameMin  = 2048
	ringHeadroom  = 128 // tpacket2_hdr, sockaddr_ll, virtio_net_hdr and their alignment, before the frame
	ringFrameMost = 64 << 10
)

// TPACKET_V2 header fields and the sockaddr_ll behind them (linux/if_packet.h).
const (
	statusCopy     = 1 << 1 // TP_STATUS_COPY: the slot was too small; the complete frame is in the socket's queue
	pktTypeOffset  = unix.SizeofTpacket2Hdr + 10
	packetOutgoing = 4
	optVnetHdr     = 15 // PACKET_VNET_HDR
	optCopyThresh  = 7  // PACKET_COPY_THRESH
	optNoOutgoing  = 23 // PACKET_IGNORE_OUTGOING
)

// ring is the mapped receive ring of a packet socket.
type ring struct {
	memory    []byte
	frameSize int
	count     int
	at        int
}

// Arrival is a frame in the ring. data is valid until ring.done.
type Arrival struct {
	data     []byte // virtio_net_hdr, then the frame
	Wall     int64  // arrival time, ns since the epoch
	Outgoing bool
	copied   bool // data is truncated; the complete frame can be read from the socket
}

// newRing creates the receive ring of the socket fd for an interface with the given MTU.
func newRing(fd, mtu int) (*ring, error) {
	frameSize := ringFrameMin
	for frameSize < mtu+model.EthernetHeader+ringHeadroom && frameSize < ringFrameMost {
		frameSize *= 2
	}
	request := unix.TpacketReq{
		Block_size: ringBlock,
		Block_nr:   ringBytes / ringBlock,
		Frame_size: uint32(frameSize),
		Frame_nr:   uint32(ringBytes / frameSize),
	}
	if err := unix.SetsockoptTpacketReq(fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &request); err != nil {
		return nil, fmt.Errorf("receive ring of %d bytes: %w", ringBytes, err)
	}
	memory, err := unix.Mmap(fd, 0, ringBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the receive ring: %w", err)
	}
	return &ring{memory: memory, frameSize: frameSize, count: ringBytes / frameSize}, nil
}

func (r *ring) slot() []byte { return r.memory[r.at*r.frameSize : (r.at+1)*r.frameSize] }

func (r *ring) header() *unix.Tpacket2Hdr { return (*unix.Tpacket2Hdr)(unsafe.Pointer(&r.slot()[0])) }

// next returns the oldest frame in the ring, or false. Call done before the next call.
func (r *ring) next() (Arrival, bool) {
	header := r.header()
	status := atomic.LoadUint32(&header.Status)
	if status&unix.TP_STATUS_USER == 0 {
		return Arrival{}, false
	}
	slot := r.slot()
	start := int(header.Mac) - model.VnetHeader
	return Arrival{
		data:     slot[start : int(header.Mac)+int(header.Snaplen)],
		Wall:     int64(header.Sec)*1e9 + int64(header.Nsec),
		Outgoing: slot[pktTypeOffset] == packetOutgoing,
		copied:   status&statusCopy != 0,
	}, true
}

// done returns the slot of the last next to the kernel.
func (r *ring) done() {
	atomic.StoreUint32(&r.header().Status, unix.TP_STATUS_KERNEL)
	r.at++
	if r.at == r.count {
		r.at = 0
	}
}

func (r *ring) close() { _ = unix.Munmap(r.memory) }
