package uplink

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"mplab/internal/ifaces"
)

// of returns an interface with addresses. "*" is a default route of both families.
func of(index int, addrs ...string) ifaces.Interface {
	i := ifaces.Interface{Name: "wlan0", Index: index}
	for _, a := range addrs {
		if a == "*" {
			i.DefaultIPv4, i.DefaultIPv6 = true, true
			continue
		}
		i.Addrs = append(i.Addrs, netip.MustParseAddr(a))
	}
	return i
}

func TestLease(t *testing.T) {
	const a, b, six = "10.64.1.2", "10.64.1.3", "fd00::2"
	none := []ifaces.Interface(nil)
	some := func(i ifaces.Interface) []ifaces.Interface { return []ifaces.Interface{i} }
	for _, c := range []struct {
		name          string
		proxy         string
		before, after []ifaces.Interface
		bound         string // address of the connection; "": it is being set up
		unfit, lost   string // error of use; reason of the lease's end
		changed       bool
	}{
		{"nothing changes", "10.64.3.2", some(of(2, a)), some(of(2, a)), a, "", "", false},
		{"down", "10.64.3.2", some(of(2, a)), none, a, "", "not there", true},
		{"down while it is set up", "10.64.3.2", some(of(2, a)), none, "", "", "not there", true},
		{"it is not there", "10.64.3.2", none, none, "", "not there", "", false},
		{"it comes", "10.64.3.2", none, some(of(2, a)), "", "not there", "", true},
		{"made anew", "10.64.3.2", some(of(2, a)), some(of(3, a)), a, "", "created again", true},
		{"its address", "10.64.3.2", some(of(2, a, b)), some(of(2, b)), a, "", "lost the address 10.64.1.2", true},
		{"another address", "10.64.3.2", some(of(2, a, b)), some(of(2, a)), a, "", "", true},
		{"an address while it is set up", "10.64.3.2", some(of(2, a, b)), some(of(2, a)), "", "", "lost the address 10.64.1.3", true},
		{"an address more", "10.64.3.2", some(of(2, a)), some(of(2, a, b)), a, "", "", true},
		{"a route", "10.64.3.2", some(of(2, a)), some(of(2, a, "*")), a, "", "", true},
		{"a route while it is set up", "10.64.3.2", some(of(2, a)), some(of(2, a, "*")), "", "", "default route", true},
		{"the route is gone", "10.64.3.2", some(of(2, a, "*")), some(of(2, a)), "", "", "", true},
		{"IPv6 alone", "10.64.3.2", some(of(2, six)), some(of(2, six, a)), "", "no IPv4 address", "", true},
		{"IPv4 alone", "fd00::1", some(of(2, a)), some(of(2, a)), "", "no IPv6 address", "", false},
		{"IPv4 goes, IPv6 stays", "10.64.3.2", some(of(2, six, a)), some(of(2, six)), a, "", "no IPv4 address", true},
		{"IPv4 goes, which is not needed", "fd00::1", some(of(2, six, a)), some(of(2, six)), six, "", "", false},
		{"link-local proxy", "fe80::1", none, none, "", "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDevices(netip.MustParseAddr(c.proxy), []Path{{Device: "wlan0"}, {Device: ""}})
			d.take(c.before)
			l, unfit := d.use(t.Context(), "wlan0")
			defer l.release()
			if (unfit == nil) != (c.unfit == "") || unfit != nil && !strings.Contains(unfit.Error(), c.unfit) {
				t.Fatalf("before: %v, want %q", unfit, c.unfit)
			}
			if c.bound != "" {
				l.bound(netip.MustParseAddr(c.bound))
			}
			d.take(c.after)
			if why := context.Cause(l); (why == nil) != (c.lost == "") || why != nil && (!lost(l) || !strings.Contains(why.Error(), c.lost)) {
				t.Errorf("after: %v, want %q", why, c.lost)
			}
			select {
			case <-l.changed:
				if !c.changed {
					t.Error("changed")
				}
			default:
				if c.changed {
					t.Error("not changed")
				}
			}
		})
	}
}

// TestLeaseWithoutDevice: paths without an interface, and unwatched interfaces, may
// always be tried.
func TestLeaseWithoutDevice(t *testing.T) {
	d := newDevices(netip.MustParseAddr("10.64.3.2"), []Path{{Device: "wlan0"}, {Device: ""}})
	for _, watched := range []bool{false, true} {
		if watched {
			d.take(nil)
		}
		l, err := d.use(t.Context(), "")
		if err != nil || l.changed != nil {
			t.Errorf("the routes decide: %v", err)
		}
		l.release()
		if !errors.Is(context.Cause(l), context.Canceled) || lost(l) {
			t.Errorf("released: %v", context.Cause(l))
		}
		l, err = d.use(t.Context(), "wlan0")
		if (err != nil) != watched {
			t.Errorf("watched %v: %v", watched, err)
		}
		l.release()
	}
	if len(d.leases) != 0 {
		t.Errorf("%d leases are kept", len(d.leases))
	}
}
