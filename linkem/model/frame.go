package model

import (
	"encoding/binary"
	"net/netip"
)

const (
	EthernetHeader = 14   // destination, source, type
	VnetHeader     = 10   // struct virtio_net_hdr: passes checksum offload from the receiving to the sending socket
	smallFrame     = 2048 // bytes of a pooled buffer: a full Ethernet frame and its VnetHeader

	typeIPv4 = 0x0800
	typeIPv6 = 0x86dd
)

// Frame is an Ethernet frame in the emulator.
type Frame struct {
	Data    []byte // virtio_net_hdr, then the frame
	Bytes   int    // IP bytes: the size that rate and queue count
	ip      bool
	class   int    // index in PrefixDelays
	arrival int64  // ns
	order   uint64 // order of admission to the queue
	draw    draw
}

// copyInto copies the frame to `to`, whose data must have the same length.
func (f *Frame) copyInto(to *Frame) {
	data := to.Data
	*to = *f
	to.Data = data
	copy(data, f.Data)
}

// Side selects the address of a packet that is on side B of the link.
type Side int

const (
	SourceIsB      Side = iota // sent by B: direction down
	DestinationIsB             // received by B: direction up
)

// classify sets the fields that the model needs, from the headers of the frame.
func (f *Frame) classify(prefixes *PrefixDelays, which Side) {
	ethernet := f.Data[VnetHeader:]
	f.Bytes = max(len(ethernet)-EthernetHeader, 0)
	f.ip, f.class = false, 0
	if len(ethernet) < EthernetHeader {
		return
	}
	var offset, length int
	switch binary.BigEndian.Uint16(ethernet[12:]) {
	case typeIPv4:
		offset, length = 12, 4
	case typeIPv6:
		offset, length = 8, 16
	default:
		return
	}
	f.ip = true
	if len(prefixes.lengths) == 0 {
		return
	}
	at := EthernetHeader + offset
	if which == DestinationIsB {
		at += length
	}
	if at+length > len(ethernet) {
		return
	}
	addr, _ := netip.AddrFromSlice(ethernet[at : at+length])
	f.class = prefixes.classOf(addr)
}

// framePool keeps frames for reuse, so that relaying does not allocate. One direction of one link uses it.
type framePool struct {
	free []*Frame
}

const poolGrowth = 256 // frames

// get returns a frame with size bytes of data.
func (p *framePool) get(size int) *Frame {
	if size > smallFrame {
		return &Frame{Data: make([]byte, size)}
	}
	if len(p.free) == 0 {
		p.grow()
	}
	last := len(p.free) - 1
	f := p.free[last]
	p.free = p.free[:last]
	f.Data = f.Data[:size]
	return f
}

// put returns a frame to the pool. Large frames are left to the garbage collector.
func (p *framePool) put(f *Frame) {
	if cap(f.Data) == smallFrame {
		p.free = append(p.free, f)
	}
}

func (p *framePool) grow() {
	buffers := make([]byte, poolGrowth*smallFrame)
	frames := make([]Frame, poolGrowth)
	for i := range frames {
		frames[i].Data = buffers[i*smallFrame : (i+1)*smallFrame : (i+1)*smallFrame]
		p.free = append(p.free, &frames[i])
	}
}
