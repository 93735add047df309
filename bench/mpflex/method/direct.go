package method

import (
	"context"
	"net"

	"mplab/internal/netx"
)

// direct connects to the origin without a proxy: by TCP over one link, or by kernel MPTCP.
type direct struct {
	place
	device    string
	multipath bool
}

func (d *direct) options() netx.Options {
	return netx.Options{Multipath: d.multipath, Device: d.device, Congestion: d.congestion}
}

// Start checks that such sockets can be opened.
func (d *direct) Start(context.Context) error { return d.options().Probe() }

// Dial implements Method.
func (d *direct) Dial(ctx context.Context) (net.Conn, error) {
	return d.options().Dial(ctx, d.origin())
}

// Proof implements Method.
func (d *direct) Proof(conn net.Conn) (Proof, error) {
	proof, err := d.prove(d.rig.Origin, d.origin())
	if tcp, ok := conn.(*net.TCPConn); ok && d.multipath {
		multipath := netx.ReadPaths(tcp).Multipath
		proof.Multipath = &multipath
	}
	return proof, err
}

// Stop implements Method.
func (d *direct) Stop() error { return nil }

// application opens a connection like an unmodified application on the phone: plain TCP, without options.
func application(ctx context.Context, p place) (net.Conn, error) {
	return netx.Options{}.Dial(ctx, p.origin())
}
