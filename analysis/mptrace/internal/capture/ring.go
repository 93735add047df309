package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

const (
	ringSize  = 32 << 20
	blockSize = 1 << 18
	// retireMS is the time after which the kernel hands over a partly filled
	// block. Such a block uses up one block of the ring, so 128 blocks of 64 ms
	// tolerate a stall of eight seconds.
	retireMS = 64
)

// ring is a packet socket with a ring buffer in shared memory (TPACKET_V3).
type ring struct {
	fd       int
	memory   []byte
	blocks   int
	next     int
	received uint64 // by the socket, including dropped packets
	dropped  uint64
}

// frame is a packet in the ring.
type frame struct {
	timeNS  int64
	data    []byte
	origLen uint32
	vlan    []byte // VLAN tag that the kernel removed from the frame; nil: none
}

// linkType returns the hardware type of an interface, which determines how its
// frames start.
func linkType(name string) (hardware uint16, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq(name)
	if err != nil {
		return 0, err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFHWADDR, request); err != nil {
		return 0, err
	}
	return request.Uint16(), nil
}

// openRing opens a packet socket. Filter and ring are in place before the
// socket is bound to the interface, so no unfiltered packet is captured.
func openRing(iface *net.Interface, program []bpf.RawInstruction) (r *ring, err error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	r = &ring{fd: fd}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if err = r.setFilter(program); err != nil {
		return nil, fmt.Errorf("packet filter: %w", err)
	}
	if err = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V3); err != nil {
		return nil, fmt.Errorf("packet ring: %w", err)
	}
	// Time stamps are taken when the packet passes the interface.
	if err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return nil, fmt.Errorf("time stamps: %w", err)
	}
	if err = r.allocate(); err != nil {
		return nil, fmt.Errorf("packet ring: %w", err)
	}
	err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ALL), Ifindex: iface.Index})
	return r, err
}

// allocate requests the full ring size, and smaller sizes if memory is short.
func (r *ring) allocate() error {
	var err error
	for r.blocks = ringSize / blockSize; r.blocks >= 4; r.blocks /= 2 {
		request := unix.TpacketReq3{
			Block_size: blockSize, Block_nr: uint32(r.blocks),
			Frame_size: 1 << 11, Frame_nr: uint32(r.blocks) * (blockSize >> 11),
			Retire_blk_tov: retireMS,
		}
		if err = unix.SetsockoptTpacketReq3(r.fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &request); err == nil {
			break
		}
		if !errors.Is(err, unix.ENOMEM) {
			return err
		}
	}
	if err != nil {
		return err
	}
	r.memory, err = unix.Mmap(r.fd, 0, r.blocks*blockSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return err
}

func (r *ring) setFilter(program []bpf.RawInstruction) error {
	code := make([]unix.SockFilter, len(program))
	for i, p := range program {
		code[i] = unix.SockFilter{Code: p.Op, Jt: p.Jt, Jf: p.Jf, K: p.K}
	}
	return unix.SetsockoptSockFprog(r.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]})
}

// stop blocks new packets.
func (r *ring) stop() error {
	return r.setFilter([]bpf.RawInstruction{{Op: unix.BPF_RET | unix.BPF_K}})
}

// wait waits until a block is ready or another descriptor is readable.
func (r *ring) wait(other int, timeout time.Duration) error {
	fds := []unix.PollFd{{Fd: int32(r.fd), Events: unix.POLLIN | unix.POLLERR}, {Fd: int32(other), Events: unix.POLLIN}}
	_, err := unix.Poll(fds, int(timeout.Milliseconds()))
	if errors.Is(err, unix.EINTR) {
		return nil
	}
	if err == nil && fds[0].Revents&unix.POLLERR != 0 {
		// The interface went down or was removed: reading the error clears it.
		if code, _ := unix.GetsockoptInt(r.fd, unix.SOL_SOCKET, unix.SO_ERROR); code != 0 {
			return unix.Errno(code)
		}
	}
	return err
}

// read passes the packets of the next block to each and releases the block. It
// returns false if the kernel has no block ready.
func (r *ring) read(each func(*frame) error) (bool, error) {
	block := r.memory[r.next*blockSize : (r.next+1)*blockSize]
	header := (*unix.TpacketHdrV1)(unsafe.Pointer(&block[8])) //nolint:gosec // the kernel's layout: version, offset, header
	status := (*uint32)(unsafe.Pointer(&header.Block_status)) //nolint:gosec // as above
	if atomic.LoadUint32(status)&unix.TP_STATUS_USER == 0 {
		return false, nil
	}
	var err error
	var f frame
	at := header.Offset_to_first_pkt
	for range header.Num_pkts {
		h := (*unix.Tpacket3Hdr)(unsafe.Pointer(&block[at])) //nolint:gosec // as above
		f.set(h, block[at:])
		if err = each(&f); err != nil {
			break
		}
		at += h.Next_offset
	}
	atomic.StoreUint32(status, unix.TP_STATUS_KERNEL)
	r.next = (r.next + 1) % r.blocks
	return true, err
}

func (f *frame) set(h *unix.Tpacket3Hdr, b []byte) {
	f.timeNS = int64(h.Sec)*1e9 + int64(h.Nsec)
	f.data = b[h.Mac : uint32(h.Mac)+h.Snaplen]
	f.origLen = h.Len
	f.vlan = nil
	if h.Status&unix.TP_STATUS_VLAN_VALID != 0 {
		protocol := uint16(0x8100)
		if h.Status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
			protocol = h.Hv1.Vlan_tpid
		}
		f.vlan = binary.BigEndian.AppendUint16(nil, protocol)
		f.vlan = binary.BigEndian.AppendUint16(f.vlan, uint16(h.Hv1.Vlan_tci))
	}
}

// count adds the socket counters since the last call.
func (r *ring) count() error {
	s, err := unix.GetsockoptTpacketStatsV3(r.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return err
	}
	r.received += uint64(s.Packets)
	r.dropped += uint64(s.Drops)
	return nil
}

func (r *ring) close() {
	if r.memory != nil {
		_ = unix.Munmap(r.memory)
	}
	_ = unix.Close(r.fd)
}

func htons(v uint16) uint16 { return v<<8 | v>>8 }
