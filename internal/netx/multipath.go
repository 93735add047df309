package netx

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Options of SOL_MPTCP and parts of its structures (include/uapi/linux/mptcp.h,
// Linux 5.16).
const (
	mptcpInfo         = 1
	mptcpTCPInfo      = 2
	mptcpSubflowAddrs = 3

	infoFlagsOffset  = 8 // mptcpi_flags in struct mptcp_info
	infoFlagFallback = 1 // MPTCP_INFO_FLAG_FALLBACK

	subflowHeaderSize  = 16  // struct mptcp_subflow_data
	subflowAddrsSize   = 256 // struct mptcp_subflow_addrs: two sockaddr_storage
	sockaddrStorage    = 128
	tcpInfoPrefix      = 8 // the part of struct tcp_info that is read: its first byte is tcpi_state
	maxSubflowsPerRead = 16
)

// Paths is the state of a carrying connection at one moment.
type Paths struct {
	Multipath bool         // an MPTCP connection that has not fallen back
	Subflows  int          // established subflows, including the initial one; 1 for plain TCP
	Local     []netip.Addr // distinct local addresses in order of creation
}

// ReadPaths reads the state of a connection. A plain TCP connection, and an
// MPTCP connection that fell back to TCP (RFC 8684 §3.7), has one subflow.
func ReadPaths(conn *net.TCPConn) Paths {
	var paths Paths
	_ = control(conn, func(fd int) { paths = readPaths(fd) })
	if !paths.Multipath {
		return Paths{Subflows: 1, Local: []netip.Addr{AddrPort(conn.LocalAddr()).Addr()}}
	}
	return paths
}

func readPaths(fd int) Paths {
	if !isMultipath(fd) {
		return Paths{}
	}
	paths := Paths{Multipath: true}
	// The two lists are read one after the other. If their lengths differ, a
	// subflow was added or removed in between: read both again.
	for range 3 {
		states, ok := readSubflows(fd, mptcpTCPInfo, tcpInfoPrefix)
		if !ok {
			break
		}
		addrs, ok := readSubflows(fd, mptcpSubflowAddrs, subflowAddrsSize)
		if !ok {
			break
		}
		if len(states) != len(addrs) {
			continue
		}
		for i, state := range states {
			if !established(state[0]) {
				continue
			}
			paths.Subflows++
			local, ok := parseSockaddr(addrs[i][:sockaddrStorage])
			if ok && !slices.Contains(paths.Local, local.Addr()) {
				paths.Local = append(paths.Local, local.Addr())
			}
		}
		break
	}
	return paths
}

// isMultipath reports whether the connection is MPTCP and has not fallen back.
// The socket option fails on any plain TCP connection.
func isMultipath(fd int) bool {
	var info [256]byte
	size := uint32(len(info))
	if err := getsockopt(fd, unix.SOL_MPTCP, mptcpInfo, unsafe.Pointer(&info), &size); err != nil {
		return false
	}
	if size < infoFlagsOffset+4 {
		return false
	}
	return binary.NativeEndian.Uint32(info[infoFlagsOffset:])&infoFlagFallback == 0
}

// readSubflows reads a socket option that returns an array with one element of
// elementSize bytes per subflow.
func readSubflows(fd, option, elementSize int) ([][]byte, bool) {
	buffer := make([]byte, subflowHeaderSize+elementSize*maxSubflowsPerRead)
	binary.NativeEndian.PutUint32(buffer[0:], subflowHeaderSize)    // size_subflow_data
	binary.NativeEndian.PutUint32(buffer[12:], uint32(elementSize)) // size_user
	size := uint32(len(buffer))
	if err := getsockopt(fd, unix.SOL_MPTCP, option, unsafe.Pointer(&buffer[0]), &size); err != nil {
		return nil, false
	}
	count := min(int(binary.NativeEndian.Uint32(buffer[4:])), maxSubflowsPerRead) // num_subflows
	elements := make([][]byte, 0, count)
	for i := range count {
		at := subflowHeaderSize + i*elementSize
		elements = append(elements, buffer[at:at+elementSize])
	}
	return elements, true
}

// established reports whether a subflow in this TCP state has completed its
// handshake and still exists.
func established(state byte) bool {
	switch state {
	case unix.BPF_TCP_SYN_SENT, unix.BPF_TCP_SYN_RECV, unix.BPF_TCP_NEW_SYN_RECV, unix.BPF_TCP_CLOSE, unix.BPF_TCP_LISTEN:
		return false
	}
	return true
}
