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
	// receiveTimeout is the maximum wait for a part of an answer, which the
	// kernel has available immediately.
	receiveTimeout = 2 * time.Second
	// bufferSize is the size of the largest part that the kernel sends.
	bufferSize = 64 << 10
	// dumpTries is the number of attempts if a change interrupts the answer.
	dumpTries = 3
)

// errTorn means that a list changed while it was read.
var errTorn = errors.New("netlink: the list changed while it was read")

// reader reads the interfaces from the kernel. It uses only what an Android
// application may use: an unbound netlink socket for addresses and routes, but
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

// read returns the usable and wanted interfaces, in no particular order.
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

// defaults holds the interfaces with a default route of one family.
type defaults struct {
	indexes map[int]bool
	hidden  bool // the system hides its routes
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

// link returns name and index of an interface, whether it is the loopback
// interface, and whether it is up and has its carrier.
func (r *reader) link(index int) (i Interface, loopback, up bool) {
	request, err := unix.NewIfreq("")
	if err != nil {
		return Interface{}, false, false
	}
	request.SetUint32(uint32(index))
	if err := unix.IoctlIfreq(r.ioctl, unix.SIOCGIFNAME, request); err != nil {
		return Interface{}, false, false // it was removed
	}
	i = Interface{Name: request.Name(), Index: index}
	if err := unix.IoctlIfreq(r.ioctl, unix.SIOCGIFFLAGS, request); err != nil {
		return Interface{}, false, false
	}
	flags := request.Uint16()
	const running = unix.IFF_UP | unix.IFF_RUNNING
	return i, flags&unix.IFF_LOOPBACK != 0, flags&running == running
}

// question requests all objects of a kind.
type question struct {
	request  uint16
	family   byte
	bodySize int
	answer   uint16
}

// dump calls each with the body of every answer to a question. If the list
// changes during the read, it calls reset and asks again. After the last
// attempt it accepts the list, because a notification follows the change.
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
				continue // of an earlier, abandoned request
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

// dumpError returns the error at the end of an answer; code 0 means no error.
func dumpError(body []byte) error {
	if len(body) < 4 {
		return nil
	}
	if code := int32(binary.NativeEndian.Uint32(body)); code < 0 {
		return fmt.Errorf("netlink: %w", syscall.Errno(-code))
	}
	return nil
}
