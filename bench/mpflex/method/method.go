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

// ErrAbsent means that this version does not have the method.
var ErrAbsent = errors.New("not there")

// Method is a way to connect from the phone to the origin.
type Method interface {
	// Start sets the method up; when it returns, the method is ready. Its error wraps ErrAbsent if this version does
	// not have the method.
	Start(ctx context.Context) error
	// Dial opens a connection to the origin like an application on the phone.
	Dial(ctx context.Context) (net.Conn, error)
	// Proof describes the carriers of an application's open connection or, with nil, those that exist without one.
	Proof(conn net.Conn) (Proof, error)
	// Stop ends the method. It can be started again.
	Stop() error
}

// Proof describes the parts of a method at one moment, read from the kernel.
type Proof struct {
	Carriers   []rig.Socket `json:"carriers"`        // the phone's data sockets to the proxy or the origin
	Multipath  *bool        `json:"mptcp,omitempty"` // for a connection that requested MPTCP: it is MPTCP (no fallback)
	Congestion []string     `json:"congestion"`      // distinct values of the carriers, at both ends
	Program    string       `json:"error,omitempty"` // a program of the method that has ended, with the reason
}

// Paths returns the distinct phone addresses of carriers that are not in backoff.
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

// Sysctl is a setting in the phone's and the proxy's namespace during the measurement of a method.
type Sysctl struct {
	Key, Value string
	Default    string // value to restore
}

// Kind is a method that is not yet bound to a rig.
type Kind struct {
	Name       string
	About      string // description for the report
	SinglePath bool   // uses only one link
	Persistent bool   // has connections that persist between measurements
	Reference  bool   // not part of the comparison; measured only in the first rounds
	Sysctls    []Sysctl

	build func(place) Method
}

// place is the rig and the ports of a method. Every method has separate ports, so that the sockets show to which method
// they belong.
type place struct {
	rig        *rig.Rig
	congestion string
	index      uint16
}

// Ports; the index of the method is added to each.
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

// keptWindows keeps the congestion windows of persistent connections during idle times.
var keptWindows = Sysctl{"net.ipv4.tcp_slow_start_after_idle", "0", "1"}

// bestSysctls makes a persistent MPTCP connection fast: windows persist, and a short stream does not wait behind a long
// send buffer. MPFlex limits send buffers itself.
var bestSysctls = []Sysctl{keptWindows, {"net.ipv4.tcp_notsent_lowat", "16384", "4294967295"}}

// Names of methods that the report compares.
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

// Kinds lists all methods, in the order of the report.
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

// prove reads the phone's sockets that carry data to an address, and the congestion control at both ends.
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
