package owner

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Layout of struct inet_diag_req_v2 and struct inet_diag_msg
// (include/uapi/linux/inet_diag.h).
const (
	diagRequestSize = 56
	diagUIDOffset   = 64
	diagInodeOffset = 68
	diagMessageSize = 72
)

// errNotFound reports that the socket does not exist, or no longer.
var errNotFound = errors.New("no such socket")

// diagRequest requests one TCP socket by its addresses.
type diagRequest struct{ local, remote netip.AddrPort }

// Len implements nl.NetlinkRequestData.
func (diagRequest) Len() int { return diagRequestSize }

// Serialize implements nl.NetlinkRequestData.
func (r diagRequest) Serialize() []byte {
	b := make([]byte, diagRequestSize)
	b[0] = unix.AF_INET6
	if r.local.Addr().Is4() {
		b[0] = unix.AF_INET
	}
	b[1] = unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(b[4:], ^uint32(0)) // all states
	binary.BigEndian.PutUint16(b[8:], r.local.Port())
	binary.BigEndian.PutUint16(b[10:], r.remote.Port())
	copy(b[12:28], r.local.Addr().AsSlice())
	copy(b[28:44], r.remote.Addr().AsSlice())
	binary.NativeEndian.PutUint32(b[48:], ^uint32(0)) // INET_DIAG_NOCOOKIE
	binary.NativeEndian.PutUint32(b[52:], ^uint32(0))
	return b
}

// diagnose returns the uid and inode of the TCP socket with these addresses.
func diagnose(local, remote netip.AddrPort) (uid, inode uint32, err error) {
	if local.Addr().Is4() != remote.Addr().Is4() {
		return 0, 0, errNotFound
	}
	request := nl.NewNetlinkRequest(nl.SOCK_DIAG_BY_FAMILY, 0)
	request.AddData(diagRequest{local, remote})
	messages, err := request.Execute(unix.NETLINK_INET_DIAG, nl.SOCK_DIAG_BY_FAMILY)
	if err != nil {
		return 0, 0, fmt.Errorf("sock_diag: %w", err)
	}
	if len(messages) == 0 || len(messages[0]) < diagMessageSize {
		return 0, 0, errNotFound
	}
	m := messages[0]
	return binary.NativeEndian.Uint32(m[diagUIDOffset:]), binary.NativeEndian.Uint32(m[diagInodeOffset:]), nil
}
