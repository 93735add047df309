package rig

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"mplab/bench/mpflex/links"
	"mplab/bench/mpflex/role"
)

// Interfaces of the phone, and the names of their links.
const (
	WiFi = "wlan0"
	LTE  = "rmnet0"
)

// Addresses.
var (
	PhoneWiFi = netip.MustParseAddr("10.64.1.2")
	PhoneLTE  = netip.MustParseAddr("10.64.2.2")
	Proxy     = netip.MustParseAddr("10.64.3.2") // reachable from the phone over both links
	Origin    = netip.MustParseAddr("10.65.0.2")
)

// Rig is the set of nodes with links between them. Without shaping, plain virtual Ethernet connects the nodes. There
// can be only one rig at a time, because its phone is the namespace of this process.
type Rig struct {
	Phone, Proxy, Origin *Node

	air      *Node // where the emulator runs
	shaped   bool
	profile  links.Profile
	programs []*Program
	control  *emulator
	dir      string
}

// settings are the sysctls of every node. Metrics of earlier connections must not influence later ones, and the sysctls
// that a method changes must have a known default.
var settings = []struct{ key, value string }{
	{"net.ipv4.tcp_no_metrics_save", "1"},
	{"net.ipv4.conf.all.rp_filter", "0"},
	{"net.ipv4.conf.default.rp_filter", "0"},
	{"net.ipv4.tcp_slow_start_after_idle", "1"},
	{"net.ipv4.tcp_notsent_lowat", "4294967295"},
}

// New creates a rig; Close removes it. Its links pass every packet immediately until Apply.
func New(shaped bool, seed uint64) (_ *Rig, err error) {
	prioritise(shaped)
	r := &Rig{Phone: self("phone"), shaped: shaped}
	defer func() {
		if err != nil {
			_ = r.Close()
		}
	}()
	if r.dir, err = os.MkdirTemp(scratch, "mpflex-bench-"); err != nil {
		return nil, err
	}
	for name, node := range map[string]**Node{"proxy": &r.Proxy, "origin": &r.Origin, "air": &r.air} {
		if *node, err = newNode(name); err != nil {
			return nil, err
		}
	}
	for _, node := range []*Node{r.Phone, r.Proxy, r.Origin} {
		for _, s := range settings {
			if err := node.SetSysctl(s.key, s.value); err != nil {
				return nil, err
			}
		}
	}
	if err := r.connect(); err != nil {
		return nil, err
	}
	if shaped {
		if err := r.emulate(seed); err != nil {
			return nil, err
		}
	}
	if err := r.answerProbes(); err != nil {
		return nil, err
	}
	return r, nil
}

// connect creates links, addresses, routes and MPTCP endpoints.
func (r *Rig) connect() error {
	for _, l := range []struct {
		a, b           *Node
		nameA, nameB   string
		airA, airB     string
		addrsA, addrsB []string
	}{
		{r.Phone, r.Proxy, WiFi, WiFi, "wlan-a", "wlan-b", []string{"10.64.1.2/24"}, []string{"10.64.1.1/24"}},
		{r.Phone, r.Proxy, LTE, LTE, "rmnet-a", "rmnet-b", []string{"10.64.2.2/24"}, []string{"10.64.2.1/24"}},
		{r.Proxy, r.Origin, "wan0", "eth0", "wan-a", "wan-b", []string{"10.65.255.1/30"}, []string{"10.65.255.2/30", "10.65.0.2/32"}},
	} {
		var err error
		if r.shaped {
			err = errors.Join(veth(l.a, l.nameA, r.air, l.airA), veth(l.b, l.nameB, r.air, l.airB))
		} else {
			err = veth(l.a, l.nameA, l.b, l.nameB)
		}
		if err == nil {
			err = errors.Join(r.up(l.a, l.nameA, l.addrsA), r.up(l.b, l.nameB, l.addrsB))
		}
		if err != nil {
			return err
		}
	}
	err := errors.Join(
		r.Proxy.ip("addr add 10.64.3.2/32 dev lo", "route add 10.65.0.0/16 via 10.65.255.2"),
		r.Proxy.SetSysctl("net.ipv4.ip_forward", "1"),
		r.Origin.ip("route add default via 10.65.255.1"),
		r.Phone.ip(
			"route add default via 10.64.1.1 dev wlan0 metric 100",
			"route add default via 10.64.2.1 dev rmnet0 metric 200",
			"rule add from 10.64.1.2 table 1", "route add default via 10.64.1.1 dev wlan0 table 1",
			"rule add from 10.64.2.2 table 2", "route add default via 10.64.2.1 dev rmnet0 table 2",
			"mptcp endpoint add 10.64.2.2 dev rmnet0 subflow",
		),
	)
	for _, node := range []*Node{r.Phone, r.Proxy, r.Origin} {
		err = errors.Join(err, node.ip("mptcp limits set subflow 4 add_addr_accepted 4"))
	}
	return err
}

func veth(a *Node, nameA string, b *Node, nameB string) error {
	return a.ip(fmt.Sprintf("link add %s type veth peer name %s netns %s", nameA, nameB, b.path))
}

// up brings up the end of a link. On shaped links, each frame must be one packet: with segments of one packet, TSO, GSO
// and GRO have nothing to merge. The emulator counts packets that were merged anyway (see Close).
func (r *Rig) up(node *Node, name string, addresses []string) error {
	var lines []string
	for _, address := range addresses {
		lines = append(lines, fmt.Sprintf("addr add %s dev %s", address, name))
	}
	line := fmt.Sprintf("link set %s up", name)
	if r.shaped {
		line += " gso_max_segs 1"
	}
	return node.ip(append(lines, line)...)
}

// emulate starts the link emulator.
func (r *Rig) emulate(seed uint64) error {
	config := filepath.Join(r.dir, "linkem.json")
	socket := filepath.Join(r.dir, "linkem")
	if err := os.WriteFile(config, linkemConfig(seed), 0o600); err != nil {
		return err
	}
	if err := r.start(r.air, role.Linkem, "run", "--config", config, "--control", socket); err != nil {
		return err
	}
	var err error
	r.control, err = dialEmulator(socket)
	return err
}

// answerProbes starts the probe servers for Verify.
func (r *Rig) answerProbes() error {
	for node, address := range map[*Node]netip.Addr{r.Proxy: Proxy, r.Origin: Origin} {
		if err := r.start(node, role.Linkem, "probe-server", "--listen", probeAddress(address)); err != nil {
			return err
		}
	}
	return nil
}

func (r *Rig) start(node *Node, what role.Role, args ...string) error {
	p, err := node.Start(what, args...)
	if err == nil {
		r.programs = append(r.programs, p)
	}
	return err
}

// Dir returns a directory for files of programs. It is removed with the rig.
func (r *Rig) Dir() string { return r.dir }

// Redirect redirects the phone's connections to a port of the origin to a local listener.
func (r *Rig) Redirect(originPort, listener uint16) error {
	return r.Phone.nft(fmt.Sprintf(`
table ip bench {
  chain output {
    type nat hook output priority -100;
    ip daddr %s tcp dport %d redirect to :%d
  }
}`, Origin, originPort, listener))
}

// Apply sets the conditions of a profile. A rig without shaping accepts only an unshaped profile.
func (r *Rig) Apply(p links.Profile) error {
	if p.Shaped != r.shaped {
		return fmt.Errorf("links %s: not for this rig", p.Name)
	}
	r.profile = p
	if !r.shaped {
		return nil
	}
	return r.control.apply(p)
}

// KillWiFi makes WiFi a black hole, immediately and in both directions: packets in flight do not arrive either.
// ReviveWiFi ends that.
func (r *Rig) KillWiFi() error { return r.atWiFi(func(n *Node) error { return n.nft(deadWiFi) }) }

// ReviveWiFi makes WiFi deliver packets again.
func (r *Rig) ReviveWiFi() error {
	return r.atWiFi(func(n *Node) error { return n.nft("delete table ip dead\n") })
}

const deadWiFi = `table ip dead {
  chain prerouting {
    type filter hook prerouting priority raw;
    iifname "` + WiFi + `" drop
  }
}
`

// atWiFi runs do at both ends of WiFi concurrently.
func (r *Rig) atWiFi(do func(*Node) error) error {
	other := make(chan error, 1)
	go func() { other <- do(r.Proxy) }()
	return errors.Join(do(r.Phone), <-other)
}

// Close ends the programs of the rig and removes it. Its error reports faults of the links during the run: merged
// packets, or packets that the emulator lost by itself.
func (r *Rig) Close() error {
	var errs []error
	if r.control != nil {
		errs = append(errs, r.control.faults(), r.control.close())
	}
	for i := len(r.programs) - 1; i >= 0; i-- {
		errs = append(errs, r.programs[i].Stop())
	}
	// The phone's namespace outlives the rig, so remove its settings one by one. Those that were never made cannot be
	// removed.
	for _, line := range []string{
		"link del " + WiFi, "link del " + LTE, "mptcp endpoint flush",
		"rule del from 10.64.1.2 table 1", "rule del from 10.64.2.2 table 2",
	} {
		_ = r.Phone.ip(line)
	}
	_ = r.Phone.nft("flush ruleset\n")
	for _, node := range []*Node{r.Proxy, r.Origin, r.air} {
		if node != nil {
			node.close()
		}
	}
	if r.dir != "" {
		errs = append(errs, os.RemoveAll(r.dir))
	}
	return errors.Join(errs...)
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
