package ifaces

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Layout of struct nlmsghdr, ifaddrmsg, rtmsg, rtattr and rtnexthop
// (include/uapi/linux/netlink.h, if_addr.h, rtnetlink.h); all are aligned to 4
// bytes.
const (
	headerSize  = unix.SizeofNlMsghdr
	addrSize    = unix.SizeofIfAddrmsg
	routeSize   = unix.SizeofRtMsg
	attrSize    = unix.SizeofRtAttr
	nexthopSize = unix.SizeofRtNexthop
)

// unfit is the set of flags of an address that the interface must not use
// (yet).
const unfit = unix.IFA_F_TENTATIVE | unix.IFA_F_DADFAILED

var errMessage = errors.New("not a netlink message")

// message is a netlink message of an answer.
type message struct {
	kind  uint16
	flags uint16
	seq   uint32
	body  []byte
}

// nextMessage removes the first message from b.
func nextMessage(b []byte) (message, []byte, error) {
	if len(b) < headerSize {
		return message{}, nil, errMessage
	}
	size := int(binary.NativeEndian.Uint32(b))
	if size < headerSize || size > len(b) {
		return message{}, nil, errMessage
	}
	m := message{
		kind:  binary.NativeEndian.Uint16(b[4:]),
		flags: binary.NativeEndian.Uint16(b[6:]),
		seq:   binary.NativeEndian.Uint32(b[8:]),
		body:  b[headerSize:size],
	}
	return m, b[min(align(size), len(b)):], nil
}

func align(n int) int { return (n + 3) &^ 3 }

// attributes calls each for the complete attributes in b.
func attributes(b []byte, each func(kind uint16, value []byte)) {
	for len(b) >= attrSize {
		size := int(binary.NativeEndian.Uint16(b))
		if size < attrSize || size > len(b) {
			return
		}
		each(binary.NativeEndian.Uint16(b[2:])&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER), b[attrSize:size])
		b = b[min(align(size), len(b)):]
	}
}

// address is an address of an interface.
type address struct {
	index int
	addr  netip.Addr
	host  bool // valid only within the host
}

// parseAddress parses the body of an RTM_NEWADDR. ok is false if a connection
// cannot use the address.
func parseAddress(body []byte) (a address, ok bool) {
	if len(body) < addrSize {
		return address{}, false
	}
	flags, scope := uint32(body[2]), body[3]
	a = address{index: int(binary.NativeEndian.Uint32(body[4:])), host: scope == unix.RT_SCOPE_HOST}
	var local, other []byte
	attributes(body[addrSize:], func(kind uint16, value []byte) {
		switch {
		case kind == unix.IFA_LOCAL:
			local = value
		case kind == unix.IFA_ADDRESS: // the peer's address if there is a local one
			other = value
		case kind == unix.IFA_FLAGS && len(value) == 4:
			flags = binary.NativeEndian.Uint32(value)
		}
	})
	if local == nil {
		local = other
	}
	a.addr, ok = netip.AddrFromSlice(local)
	return a, ok && flags&unfit == 0 && scope != unix.RT_SCOPE_LINK && scope != unix.RT_SCOPE_NOWHERE &&
		!a.addr.IsLinkLocalUnicast() && !a.addr.IsMulticast() && !a.addr.IsUnspecified()
}

// parseDefault parses the body of an RTM_NEWROUTE. If it is an active default
// route of the family, it returns the interfaces of the route.
func parseDefault(body []byte, family byte) (indexes []int) {
	if len(body) < routeSize || body[0] != family {
		return nil
	}
	destinationBits, table, kind := body[1], body[4], body[7]
	flags := binary.NativeEndian.Uint32(body[8:])
	if destinationBits != 0 || table == unix.RT_TABLE_LOCAL || kind != unix.RTN_UNICAST || flags&unix.RTM_F_CLONED != 0 {
		return nil
	}
	attributes(body[routeSize:], func(kind uint16, value []byte) {
		switch {
		case kind == unix.RTA_OIF && len(value) == 4:
			if flags&(unix.RTNH_F_DEAD|unix.RTNH_F_LINKDOWN) == 0 {
				indexes = append(indexes, int(binary.NativeEndian.Uint32(value)))
			}
		case kind == unix.RTA_MULTIPATH:
			indexes = append(indexes, parseNexthops(value)...)
		}
	})
	return indexes
}

// parseNexthops returns the interfaces of a multipath route.
func parseNexthops(b []byte) (indexes []int) {
	for len(b) >= nexthopSize {
		size := int(binary.NativeEndian.Uint16(b))
		if size < nexthopSize || size > len(b) {
			return indexes
		}
		if b[2]&(unix.RTNH_F_DEAD|unix.RTNH_F_LINKDOWN) == 0 {
			indexes = append(indexes, int(binary.NativeEndian.Uint32(b[4:])))
		}
		b = b[min(align(size), len(b)):]
	}
	return indexes
}
