package rig

import (
	"encoding/binary"
	"fmt"
	"iter"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Layout of struct inet_diag_req_v2, struct inet_diag_msg (include/uapi/linux/inet_diag.h) and struct tcp_info
// (include/uapi/linux/tcp.h).
const (
	diagRequestSize = 56
	diagMessageSize = 72
	attributeInfo   = 2 // INET_DIAG_INFO
	attributeCong   = 4 // INET_DIAG_CONG

	tcpStateEstablished = 1
	infoBackoff         = 4
	infoRTT             = 68 // µs
	infoCwnd            = 80
	infoRetransmitted   = 100
	infoSize            = 104
)

// Socket is an established TCP socket of a node, which can be a subflow.
type Socket struct {
	Local         netip.AddrPort `json:"local"`
	Remote        netip.AddrPort `json:"remote"`
	Congestion    string         `json:"congestion"`
	RTTMs         float64        `json:"rtt_ms"`
	Cwnd          uint32         `json:"cwnd"`
	Retransmitted uint32         `json:"retransmitted"` // segments since it was opened
	Backoff       uint8          `json:"backoff"`       // consecutive timeouts: not 0 on a path that is currently dead
}

// Sockets returns the established IPv4 sockets of the node.
func (n *Node) Sockets() (sockets []Socket, err error) {
	request := nl.NewNetlinkRequest(nl.SOCK_DIAG_BY_FAMILY, unix.NLM_F_DUMP)
	request.AddData(establishedIPv4{})
	var messages [][]byte
	n.Do(func() { messages, err = request.Execute(unix.NETLINK_INET_DIAG, nl.SOCK_DIAG_BY_FAMILY) })
	if err != nil {
		return nil, fmt.Errorf("%s: sock_diag: %w", n.Name, err)
	}
	for _, m := range messages {
		if len(m) < diagMessageSize {
			continue
		}
		sockets = append(sockets, parseSocket(m))
	}
	return sockets, nil
}

func parseSocket(m []byte) Socket {
	s := Socket{
		Local:  netip.AddrPortFrom(netip.AddrFrom4([4]byte(m[8:12])), binary.BigEndian.Uint16(m[4:])),
		Remote: netip.AddrPortFrom(netip.AddrFrom4([4]byte(m[24:28])), binary.BigEndian.Uint16(m[6:])),
	}
	for kind, value := range attributes(m[diagMessageSize:]) {
		switch {
		case kind == attributeCong:
			s.Congestion = strings.TrimRight(string(value), "\x00")
		case kind == attributeInfo && len(value) >= infoSize:
			s.Backoff = value[infoBackoff]
			s.RTTMs = float64(binary.NativeEndian.Uint32(value[infoRTT:])) / 1000
			s.Cwnd = binary.NativeEndian.Uint32(value[infoCwnd:])
			s.Retransmitted = binary.NativeEndian.Uint32(value[infoRetransmitted:])
		}
	}
	return s
}

// attributes iterates over the complete netlink attributes. (nl.ParseRouteAttr panics if the last one is truncated.)
func attributes(b []byte) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= unix.SizeofNlAttr {
			length := int(binary.NativeEndian.Uint16(b))
			if length < unix.SizeofNlAttr || length > len(b) {
				return
			}
			if !yield(binary.NativeEndian.Uint16(b[2:]), b[unix.SizeofNlAttr:length]) {
				return
			}
			b = b[min(len(b), (length+unix.NLA_ALIGNTO-1)&^(unix.NLA_ALIGNTO-1)):]
		}
	}
}

// establishedIPv4 requests all established TCP sockets over IPv4, with the attributes above.
type establishedIPv4 struct{}

// Len implements nl.NetlinkRequestData.
func (establishedIPv4) Len() int { return diagRequestSize }

// Serialize implements nl.NetlinkRequestData.
func (establishedIPv4) Serialize() []byte {
	b := make([]byte, diagRequestSize)
	b[0], b[1] = unix.AF_INET, unix.IPPROTO_TCP
	b[2] = 1<<(attributeInfo-1) | 1<<(attributeCong-1)
	binary.NativeEndian.PutUint32(b[4:], 1<<tcpStateEstablished)
	return b
}
