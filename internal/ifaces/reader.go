package ifaces

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// receiveTimeout bounds the wait for a part of an answer; the kernel has it
	// at once.
	receiveTimeout = 2 * time.Second
	// bufferSize holds the largest part that the kernel sends.
	bufferSize = 64 << 10
	// dumpTries is how often it asks when the answer is torn by a change.
	dumpTries = 3
)

// errTorn: something changed while it was listed.
var errTorn = errors.New("netlink: the list changed while it was read")

// reader asks the kernel what is there. It uses no more than an application on
// Android may: a netlink socket that was not bound, for addresses and routes but
// not for links, and ioctl for the rest (netdevice(7)).
type reader struct {
	netlink int
	ioctl   int
	seq     uint32
	buffer  []byte
}

func newReader() (*reader, error) {
	netlink, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("netlink: %w", err)
	}
	limit := unix.NsecToTimeval(int64(receiveTimeout))
	if err := unix.SetsockoptTimeval(netlink, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		_ = unix.Close(netlink)
		return nil, fmt.Errorf("netlink: SO_RCVTIMEO: %w", err)
	}
	ioctl, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		_ = unix.Close(netlink)
		return nil, fmt.Errorf("socket: %w", err)
	}
	return &reader{netlink: netlink, ioctl: ioctl, buffer: make([]byte, bufferSize)}, nil
}

func (r *reader) close() {
	_ = unix.Close(r.netlink)
	_ = unix.Close(r.ioctl)
}

// read returns the interfaces that can be used and are wanted, in no order.
func (r *reader) read(wanted func(name string, loopback bool) bool) ([]Interface, error) {
	addresses := make(map[int][]address)
	err := r.dump(question{unix.RTM_GETADDR, unix.AF_UNSPEC, addrSize, unix.RTM_NEWADDR}, func() { clear(addresses) }, func(body []byte) {
		if a, ok := parseAddress(body); ok {
			addresses[a.index] = append(addresses[a.index], a)
		}
	})
	if err != nil {
		return nil, err
	}
	default4, err := r.defaults(unix.AF_INET)
	if err != nil {
		return nil, err
	}
	default6, err := r.defaults(unix.AF_INET6)
	if err != nil {
		return nil, err
	}
	var found []Interface
	for index, all := range addresses {
		i, loopback, up := r.link(index)
		if !up || !wanted(i.Name, loopback) {
			continue
		}
		for _, a := range all {
			if !a.host || loopback {
				i.Addrs = append(i.Addrs, a.addr)
			}
		}
		if len(i.Addrs) == 0 {
			continue
		}
		slices.SortFunc(i.Addrs, netip.Addr.Compare)
		i.DefaultIPv4 = default4.over(i, netip.Addr.Is4)
		i.DefaultIPv6 = default6.over(i, netip.Addr.Is6)
		found = append(found, i)
	}
	return found, nil
}

// defaults are the interfaces with a default route of one family.
type defaults struct {
	indexes map[int]bool
	hidden  bool // the system does not tell
}

func (d defaults) over(i Interface, family func(netip.Addr) bool) bool {
	return d.indexes[i.Index] || d.hidden && slices.ContainsFunc(i.Addrs, family)
}

func (r *reader) defaults(family byte) (defaults, error) {
	indexes := make(map[int]bool)
	err := r.dump(question{unix.RTM_GETROUTE, family, routeSize, unix.RTM_NEWROUTE}, func() { clear(indexes) }, func(body []byte) {
		for _, index := range parseDefault(body, family) {
			indexes[index] = true
		}
	})
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return defaults{hidden: true}, nil
	}
	return defaults{indexes: indexes}, err
}

// link returns what an interface is called, and whether it is up and has its
// carrier.
func (r *reader) link(index int) (i Interface, loopback, up bool) {
	request, err := unix.NewIfreq("")
	if err != nil {
		return Interface{}, false, false
	}
	request.SetUint32(uint32(index))
	if err := unix.IoctlIfreq(r.ioctl, unix.SIOCGIFNAME, request); err != nil {
		return Interface{}, false, false // it is gone
	}
	i = Interface{Name: request.Name(), Index: index}
	if err := unix.IoctlIfreq(r.ioctl, unix.SIOCGIFFLAGS, request); err != nil {
		return Interface{}, false, false
	}
	flags := request.Uint16()
	const running = unix.IFF_UP | unix.IFF_RUNNING
	return i, flags&unix.IFF_LOOPBACK != 0, flags&running == running
}

// question asks for all objects of a kind.
type question struct {
	request  uint16
	family   byte
	bodySize int
	answer   uint16
}

// dump calls each with the body of every answer to a question. When the list
// changes meanwhile it calls reset and asks again; the last time the list is
// taken as it is, for the change comes with a notice.
func (r *reader) dump(q question, reset func(), each func(body []byte)) error {
	for range dumpTries {
		reset()
		if err := r.dumpOnce(q, each); !errors.Is(err, errTorn) {
			return err
		}
	}
	return nil
}

func (r *reader) dumpOnce(q question, each func(body []byte)) error {
	r.seq++
	b := make([]byte, headerSize+q.bodySize)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], q.request)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	binary.NativeEndian.PutUint32(b[8:], r.seq)
	b[headerSize] = q.family
	if err := unix.Sendto(r.netlink, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("netlink: %w", err)
	}
	torn := false
	for {
		n, _, err := unix.Recvfrom(r.netlink, r.buffer, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("netlink: %w", err)
		}
		for rest := r.buffer[:n]; len(rest) > 0; {
			var m message
			if m, rest, err = nextMessage(rest); err != nil {
				return err
			}
			if m.seq != r.seq {
				continue // of an earlier request that was given up
			}
			torn = torn || m.flags&unix.NLM_F_DUMP_INTR != 0
			switch m.kind {
			case q.answer:
				each(m.body)
			case unix.NLMSG_ERROR:
				return dumpError(m.body)
			case unix.NLMSG_DONE:
				if torn {
					return errTorn
				}
				return dumpError(m.body)
			}
		}
	}
}

// dumpError reads the error that ends an answer; 0 is none.
func dumpError(body []byte) error {
	if len(body) < 4 {
		return nil
	}
	if code := int32(binary.NativeEndian.Uint32(body)); code < 0 {
		return fmt.Errorf("netlink: %w", syscall.Errno(-code))
	}
	return nil
}
