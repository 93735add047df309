package labtest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mplab/analysis/mptrace/internal/capture"
)

// Numbers of the paths of a lab.
const (
	WLAN  = 0
	RMNET = 1
)

// Addresses of the two paths.
var (
	Client4 = [2]netip.Addr{netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("10.2.0.1")}
	Server4 = [2]netip.Addr{netip.MustParseAddr("10.1.0.2"), netip.MustParseAddr("10.2.0.2")}
	Client6 = [2]netip.Addr{netip.MustParseAddr("fd01::1"), netip.MustParseAddr("fd02::1")}
	Server6 = [2]netip.Addr{netip.MustParseAddr("fd01::2"), netip.MustParseAddr("fd02::2")}
)

// Interfaces of client and server on the two paths.
var (
	ClientInterfaces = [2]string{"wlan0", "rmnet0"}
	ServerInterfaces = [2]string{"s1", "s2"}
)

// Lab is a phone, a server and two paths between them.
type Lab struct {
	Client, Server *Node
	Paths          [2]*Path

	air   *Node
	undo  []func()
	close sync.Once
}

// Options of a [Lab].
type Options struct {
	// Direct joins the interfaces without a relay: faster, but Paths are nil.
	Direct bool
	// Checksum enables MPTCP checksums.
	Checksum bool
	// NoSecondSubflow omits the client's endpoint on rmnet0.
	NoSecondSubflow bool
}

// Missing returns an error that names what this machine lacks for a lab, or
// nil.
func Missing() error {
	for _, program := range []string{"ip", "ethtool"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%s is not installed", program)
		}
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_MPTCP)
	if err != nil {
		return errors.New("the kernel has no Multipath TCP")
	}
	_ = unix.Close(fd)
	node, err := newNode()
	if err != nil {
		return err
	}
	node.close()
	return nil
}

// New builds a lab. The caller must call Close.
func New(o Options) (*Lab, error) {
	l := new(Lab)
	for _, node := range []**Node{&l.Client, &l.Server, &l.air} {
		made, err := newNode()
		if err != nil {
			l.Close()
			return nil, err
		}
		*node = made
		l.undo = append(l.undo, made.close)
	}
	if err := l.build(o); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Close removes relays and namespaces.
func (l *Lab) Close() {
	l.close.Do(func() {
		for i := len(l.undo) - 1; i >= 0; i-- {
			l.undo[i]()
		}
	})
}

func (l *Lab) build(o Options) error {
	for _, step := range []func(Options) error{l.settings, l.wires, l.addresses, l.multipath} {
		if err := step(o); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) settings(o Options) error {
	for _, node := range []*Node{l.Client, l.Server, l.air} {
		for _, s := range [][2]string{
			{"net.ipv4.conf.all.rp_filter", "0"}, {"net.ipv4.conf.default.rp_filter", "0"},
			{"net.ipv6.conf.default.accept_dad", "0"}, {"net.ipv6.conf.default.router_solicitations", "0"},
			{"net.ipv4.tcp_no_metrics_save", "1"}, {"net.ipv4.ip_local_port_range", "20000 60999"},
			{"net.mptcp.checksum_enabled", map[bool]string{true: "1", false: "0"}[o.Checksum]},
			{"net.mptcp.add_addr_timeout", "2"},
		} {
			if err := node.Set(s[0], s[1]); err != nil {
				return err
			}
		}
		// Reno is always allowed and is deterministic; BBR paces by its own
		// measurements.
		if err := node.Set("net.ipv4.tcp_congestion_control", "reno"); err != nil {
			return err
		}
	}
	return l.air.Set("net.ipv6.conf.default.disable_ipv6", "1")
}

// wires connects client and server, directly or through relays.
func (l *Lab) wires(o Options) error {
	for i := range 2 {
		client, server := ClientInterfaces[i], ServerInterfaces[i]
		if o.Direct {
			if err := l.Client.IP(fmt.Sprintf("link add %s type veth peer name %s netns %s", client, server, l.Server.path())); err != nil {
				return err
			}
		} else if err := l.relay(i, client, server); err != nil {
			return err
		}
		for node, name := range map[*Node]string{l.Client: client, l.Server: server} {
			if err := plain(node, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *Lab) relay(i int, client, server string) error {
	if err := l.Client.IP(fmt.Sprintf("link add %s type veth peer name c%d netns %s", client, i, l.air.path())); err != nil {
		return err
	}
	if err := l.Server.IP(fmt.Sprintf("link add %s type veth peer name v%d netns %s", server, i, l.air.path())); err != nil {
		return err
	}
	ends := [2]string{fmt.Sprintf("c%d", i), fmt.Sprintf("v%d", i)}
	for _, end := range ends {
		if err := plain(l.air, end); err != nil {
			return err
		}
	}
	path, err := newPath(l.air, ends)
	if err != nil {
		return err
	}
	l.Paths[i] = path
	l.undo = append(l.undo, path.close)
	return nil
}

// plain brings up an interface without offloading, so that packets are as on a
// wire: none larger than the MTU, all with checksums.
func plain(node *Node, name string) error {
	if err := node.Run("ethtool", "-K", name, "tx", "off", "tso", "off", "gso", "off", "gro", "off"); err != nil {
		return err
	}
	return node.IP("link set " + name + " up")
}

func (l *Lab) addresses(Options) error {
	for i := range 2 {
		client, server, table := ClientInterfaces[i], ServerInterfaces[i], 101+i
		for _, family := range []struct {
			bits           int
			option         string
			client, server netip.Addr
		}{{24, "-4", Client4[i], Server4[i]}, {64, "-6", Client6[i], Server6[i]}} {
			if err := l.Client.IP(
				fmt.Sprintf("addr add %s/%d dev %s", family.client, family.bits, client),
				fmt.Sprintf("%s route add default via %s dev %s table %d", family.option, family.server, client, table),
				fmt.Sprintf("%s rule add from %s table %d", family.option, family.client, table),
			); err != nil {
				return err
			}
			if err := l.Server.IP(fmt.Sprintf("addr add %s/%d dev %s", family.server, family.bits, server)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *Lab) multipath(o Options) error {
	for _, node := range []*Node{l.Client, l.Server} {
		if err := node.IP("mptcp limits set subflow 4 add_addr_accepted 4"); err != nil {
			return err
		}
	}
	if o.NoSecondSubflow {
		return nil
	}
	return l.Client.IP(
		fmt.Sprintf("mptcp endpoint add %s dev rmnet0 subflow", Client4[RMNET]),
		fmt.Sprintf("mptcp endpoint add %s dev rmnet0 subflow", Client6[RMNET]),
	)
}

// Capture writes the packet headers on the interfaces of client and server to
// DIR/PREFIX-INTERFACE.pcapng. The returned function ends the captures. It
// returns an error if the kernel dropped a packet.
func (l *Lab) Capture(dir, prefix string) (stop func() error, err error) {
	var ends []func() error
	stop = func() (err error) {
		time.Sleep(20 * time.Millisecond) // for packets in flight
		for _, end := range ends {
			err = errors.Join(err, end())
		}
		return err
	}
	for node, names := range map[*Node][2]string{l.Client: ClientInterfaces, l.Server: ServerInterfaces} {
		for _, name := range names {
			var c *capture.Capture
			node.Do(func() {
				c, err = capture.Open(capture.Options{Interface: name, File: filepath.Join(dir, prefix+"-"+name+".pcapng")},
					func(string) {})
			})
			if err != nil {
				_ = stop()
				return nil, err
			}
			ends = append(ends, run(c, name))
		}
	}
	return stop, nil
}

func run(c *capture.Capture, name string) (end func() error) {
	done := make(chan error)
	go func() {
		_, dropped, err := c.Run()
		if err == nil && dropped > 0 {
			err = fmt.Errorf("capture on %s: %d packets dropped", name, dropped)
		}
		done <- err
	}()
	return func() error {
		c.Stop()
		return <-done
	}
}

// Listen opens a server socket; with multipath it also accepts Multipath TCP.
func (l *Lab) Listen(address netip.AddrPort, multipath bool) (*net.TCPListener, error) {
	var listener *net.TCPListener
	err := os.ErrInvalid
	l.Server.Do(func() { listener, err = listen(address, multipath) })
	return listener, err
}
