package agent

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"mplab/internal/ifaces"
	"mplab/mpflex/internal/forward/relay"
)

func interfaces(addrs ...string) []ifaces.Interface {
	i := ifaces.Interface{Name: "wlan0", Index: 1}
	for _, a := range addrs {
		i.Addrs = append(i.Addrs, netip.MustParseAddr(a))
	}
	return []ifaces.Interface{i}
}

func TestNetworksThatGo(t *testing.T) {
	const wifi, other = "10.64.1.2", "10.64.2.2"
	for _, c := range []struct {
		name  string
		do    func(*networks, *use)
		ended bool
	}{
		{"its address goes", func(n *networks, u *use) {
			u.bound(netip.MustParseAddr(wifi))
			n.take(interfaces(other))
		}, true},
		{"its address goes, written as IPv6", func(n *networks, u *use) {
			u.bound(netip.MustParseAddr("::ffff:" + wifi))
			n.take(nil)
		}, true},
		{"another address goes", func(n *networks, u *use) {
			u.bound(netip.MustParseAddr(wifi))
			n.take(interfaces(wifi))
		}, false},
		{"its address goes before it is known", func(n *networks, u *use) {
			n.take(interfaces(other))
			u.bound(netip.MustParseAddr(wifi))
		}, true},
		{"another address goes before its own is known", func(n *networks, u *use) {
			n.take(interfaces(wifi))
			u.bound(netip.MustParseAddr(wifi))
		}, false},
		{"an address that never was on an interface", func(n *networks, u *use) {
			u.bound(netip.MustParseAddr("127.0.0.1"))
			n.take(nil)
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var n networks
			n.take(interfaces(wifi, other))
			u := n.use(context.Background())
			defer u.end()
			c.do(&n, u)
			if ended := u.Err() != nil; ended != c.ended {
				t.Errorf("ended: %t", ended)
			}
			if c.ended && !errors.Is(ending(u), errLost) {
				t.Errorf("ended by %v", ending(u))
			}
		})
	}
}

func TestTheEndOfTheProgramIsNoLostNetwork(t *testing.T) {
	var n networks
	ctx, cancel := context.WithCancel(context.Background())
	u := n.use(ctx)
	cancel()
	if err := ending(u); !errors.Is(err, relay.ErrShutdown) {
		t.Error(err)
	}
	u.end()
	if len(n.uses) != 0 {
		t.Error("a use is left")
	}
}
