package probe

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mplab/linkem/internal/system"
)

const bufferBytes = 8 << 20 // per direction of a socket; limited by the kernel for an unprivileged user

// socket is a UDP socket with kernel arrival times. One goroutine can receive, any can send.
type socket struct {
	*net.UDPConn
	packet [65536]byte
	oob    [128]byte
}

func newSocket(conn *net.UDPConn) (*socket, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
		system.SetBuffers(int(fd), bufferBytes)
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, fmt.Errorf("set up the probe's socket: %w", err)
	}
	return &socket{UDPConn: conn}, nil
}

// received is a received packet of the probe.
type received struct {
	message
	from  netip.AddrPort
	bytes int   // IP bytes
	at    int64 // arrival time in the kernel, ns since the epoch
}

// receive waits for the next packet of the probe, until the read deadline. It skips other packets.
func (s *socket) receive() (received, error) {
	for {
		n, oobn, _, from, err := s.ReadMsgUDPAddrPort(s.packet[:], s.oob[:])
		if err != nil {
			return received{}, err
		}
		message, ok := parse(s.packet[:n])
		if !ok {
			continue
		}
		at, stamped := arrivalStamp(s.oob[:oobn])
		if !stamped {
			at = time.Now().UnixNano()
		}
		return received{message, from, n + overheadTo(from), at}, nil
	}
}

// arrivalStamp returns the time in the SCM_TIMESTAMPNS control message (socket(7), SO_TIMESTAMPNS).
func arrivalStamp(oob []byte) (int64, bool) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return 0, false
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= 16 {
			seconds, ns := binary.NativeEndian.Uint64(m.Data), binary.NativeEndian.Uint64(m.Data[8:])
			return int64(seconds)*1e9 + int64(ns), true
		}
	}
	return 0, false
}

// overheadTo returns the IP and UDP header bytes of packets to and from an address.
func overheadTo(addr netip.AddrPort) int {
	if addr.Addr().Unmap().Is4() {
		return udpOverhead
	}
	return udp6Overhead
}

// padded returns the payload of a message of ipBytes IP bytes.
func padded(m message, ipBytes, overhead int) []byte {
	packet := make([]byte, max(ipBytes-overhead, headBytes))
	m.put(packet)
	return packet
}

// connect connects to a server from one interface (SO_BINDTODEVICE); an empty device means by routing.
func connect(device, server string) (*socket, error) {
	dialer := net.Dialer{Timeout: 5 * time.Second, Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(fd uintptr) {
			if device != "" {
				failed = unix.BindToDevice(int(fd), device)
			}
		})
		if err != nil {
			return err
		}
		return failed
	}}
	conn, err := dialer.Dial("udp", server)
	if err != nil {
		return nil, err
	}
	return newSocket(conn.(*net.UDPConn))
}
