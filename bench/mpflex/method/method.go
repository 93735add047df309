package method

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"

	"mplab/bench/mpflex/muxed"
	"mplab/bench/mpflex/rig"
)

// ErrAbsent: the method does not exist in this version.
var ErrAbsent = errors.New("not there")

// Method is one way from the phone to the origin.
type Method interface {
	// Start sets the method up; it is ready when Start returns. Its error wraps ErrAbsent when this version has no such
	// method.
	Start(ctx context.Context) error
	// Dial opens a connection to the origin as an application on the phone would.
	Dial(ctx context.Context) (net.Conn, error)
	// Proof tells what carries an application's open connection; with nil, what is there without one.
	Proof(conn net.Conn) (Proof, error)
	// Stop takes the method down. It can be started again.
	Stop() error
}

// Proof is what a method consists of at one moment, read from the kernel.
type Proof struct {
	Carriers   []rig.Socket `json:"carriers"`        // the phone's sockets that carry data to the proxy or the origin
	Multipath  *bool        `json:"mptcp,omitempty"` // of a connection that asked for MPTCP: whether it is (no fallback)
	Congestion []string     `json:"congestion"`      // of the carriers, at both ends; each once
	Program    string       `json:"error,omitempty"` // a program of the method that has ended, and why
}

// Paths are the phone's addresses that have a carrier that is not in backoff; each once.
func (p Proof) Paths() []netip.Addr {
	var paths []netip.Addr
	for _, s := range p.Carriers {
		if s.Backoff == 0 && !slices.Contains(paths, s.Local.Addr()) {
			paths = append(paths, s.Local.Addr())
		}
	}
	slices.SortFunc(paths, netip.Addr.Compare)
	return paths
}

// Sysctl is a setting of the phone's and the proxy's namespace while a method is measured.
type Sysctl struct {
	Key, Value string
	Default    string // what it is set back to
}

// Kind is a method before it is made for a rig.
type Kind struct {
	Name       string
	About      string // for the report
	SinglePath bool   // uses one link only
	Persistent bool   // has connections that stay between measurements
	Reference  bool   // beside the table; measured in the first rounds only
	Sysctls    []Sysctl

	build func(place) Method
}

// place is where a method of a kind lives: every method has ports of its own, so that sockets tell whose they are.
type place struct {
	rig        *rig.Rig
	congestion string
	index      uint16
}

// Ports, each counted up by the index of the method.
const (
	originPorts   = 9000
	proxyPorts    = 7000
	redirectPorts = 3100
)

func (p place) origin() netip.AddrPort { return netip.AddrPortFrom(rig.Origin, originPorts+p.index) }
func (p place) proxy() netip.AddrPort  { return netip.AddrPortFrom(rig.Proxy, proxyPorts+p.index) }
func (p place) redirect() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), redirectPorts+p.index)
}

// keptWindows lets the windows of persistent connections outlive idle times.
var keptWindows = Sysctl{"net.ipv4.tcp_slow_start_after_idle", "0", "1"}

// bestSysctls are what makes one persistent MPTCP connection fast: windows that are kept, and a short stream does not
// wait behind a send buffer. MPFlex keeps send buffers short by itself.
var bestSysctls = []Sysctl{keptWindows, {"net.ipv4.tcp_notsent_lowat", "16384", "4294967295"}}

// Names that the report compares with.
const (
	MPTCP       = "mptcp"
	YamuxMPTCP  = "yamux-mptcp"
	YamuxTCP    = "yamux-tcp"
	YamuxTLS    = "yamux-tls"
	MPFlex      = "mpflex"
	MPFlexPlain = "mpflex-plain"
	mpflexUnset = "mpflex-unset"
	TCPWiFi     = "tcp-wifi"
	tcpLTE      = "tcp-lte"
	mptcpRelay  = "mptcp-relay"
)

// Transports of the agent.
const (
	transportMPTCP  = "mptcp"
	transportMPFlex = "mpflex"
	transportPlain  = "mpflex_plain"
)

// Kinds are all methods, in the order of the report.
var Kinds = []Kind{
	{
		Name: TCPWiFi, About: "TCP from the phone to the origin over WiFi", SinglePath: true, Reference: true,
		build: func(p place) Method { return &direct{place: p, device: rig.WiFi} },
	},
	{
		Name: tcpLTE, About: "TCP from the phone to the origin over LTE", SinglePath: true, Reference: true,
		build: func(p place) Method { return &direct{place: p, device: rig.LTE} },
	},
	{
		Name: MPTCP, About: "kernel MPTCP from the phone to the origin",
		build: func(p place) Method { return &direct{place: p, multipath: true} },
	},
	{
		Name: mptcpRelay, About: "agent and proxy with transport mptcp: an MPTCP connection for each of the application's", Reference: true,
		build: func(p place) Method { return agentAndProxy(p, transportMPTCP) },
	},
	{
		Name: YamuxTCP, About: "hashicorp/yamux over one persistent TCP connection over WiFi", SinglePath: true, Persistent: true, Reference: true,
		Sysctls: bestSysctls,
		build:   func(p place) Method { return yamux(p, muxed.Config{Device: rig.WiFi}) },
	},
	{
		Name: YamuxTLS, About: "the same with TLS 1.3", SinglePath: true, Persistent: true, Reference: true,
		Sysctls: bestSysctls,
		build:   func(p place) Method { return yamux(p, muxed.Config{Device: rig.WiFi, Private: true}) },
	},
	{
		Name: YamuxMPTCP, About: "hashicorp/yamux over one persistent MPTCP connection", Persistent: true,
		Sysctls: bestSysctls,
		build:   func(p place) Method { return yamux(p, muxed.Config{Multipath: true}) },
	},
	{
		Name: MPFlex, About: "agent and proxy with transport mpflex", Persistent: true,
		Sysctls: []Sysctl{keptWindows},
		build:   func(p place) Method { return agentAndProxy(p, transportMPFlex) },
	},
	{
		Name: mpflexUnset, About: "the same without any sysctl", Persistent: true, Reference: true,
		build: func(p place) Method { return agentAndProxy(p, transportMPFlex) },
	},
	{
		Name: MPFlexPlain, About: "mpflex without TLS", Persistent: true, Reference: true,
		Sysctls: []Sysctl{keptWindows},
		build:   func(p place) Method { return agentAndProxy(p, transportPlain) },
	},
}

// prove reads what carries data to an address: sockets of the phone, and the congestion control at both ends.
func (p place) prove(peer *rig.Node, carrier netip.AddrPort) (Proof, error) {
	var proof Proof
	here, err := p.rig.Phone.Sockets()
	if err != nil {
		return proof, err
	}
	there, err := peer.Sockets()
	if err != nil {
		return proof, err
	}
	add := func(congestion string) {
		if !slices.Contains(proof.Congestion, congestion) {
			proof.Congestion = append(proof.Congestion, congestion)
		}
	}
	for _, s := range here {
		if s.Remote == carrier {
			proof.Carriers = append(proof.Carriers, s)
			add(s.Congestion)
		}
	}
	for _, s := range there {
		if s.Local == carrier {
			add(s.Congestion)
		}
	}
	slices.Sort(proof.Congestion)
	return proof, nil
}
