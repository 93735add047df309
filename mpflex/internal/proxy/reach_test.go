package proxy

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"mplab/mpflex/config"
)

func TestReachOfTheProxyItself(t *testing.T) {
	for _, c := range []struct {
		rules       []string
		destination string
		want        bool
	}{
		{[]string{"10.0.0.0/8:*", "[::/0]:*"}, "10.9.0.2:80", true},
		{[]string{"10.0.0.0/8:*"}, "10.9.0.1:80", false},
		{[]string{"10.9.0.0/31:80"}, "10.9.0.1:80", false},
		{[]string{"10.0.0.0/8:*", "[::/0]:*"}, "[::ffff:10.9.0.1]:80", false},
		{[]string{"[::/0]:*"}, "[fd00::1]:80", false},
		{[]string{"[fd00::1/128]:*"}, "[fd00::1]:80", true},
		{[]string{"10.9.0.1/32:*"}, "10.9.0.1:80", true},
		{[]string{"10.9.0.1/32:80"}, "10.9.0.1:443", false},
		// Listeners: 10.9.0.1:7003, 127.0.0.1:7001 and port 7002 of all addresses.
		{[]string{"10.9.0.1/32:*"}, "10.9.0.1:7003", false},
		{[]string{"10.9.0.1/32:7003"}, "10.9.0.1:7003", true},
		{[]string{"10.9.0.1/32:*"}, "10.9.0.1:7002", false},
		{[]string{"10.9.0.1/32:7002"}, "10.9.0.1:7002", true},
		{[]string{"127.0.0.0/8:*"}, "127.0.0.1:7001", false},
		{[]string{"127.0.0.0/8:*"}, "127.0.0.2:7001", true},
		{[]string{"127.0.0.0/8:*"}, "127.0.0.2:7002", false},
		{[]string{"0.0.0.0/32:*"}, "0.0.0.0:7002", false},
		{[]string{"10.0.0.0/8:*"}, "10.9.0.2:7002", true},
	} {
		allow, err := config.ParseAllow(c.rules)
		if err != nil {
			t.Fatal(err)
		}
		r := &reach{
			allow: allow, read: time.Now().Add(time.Hour),
			own: map[netip.Addr]bool{netip.MustParseAddr("10.9.0.1"): true, netip.MustParseAddr("fd00::1"): true},
			listeners: []netip.AddrPort{
				netip.MustParseAddrPort("127.0.0.1:7001"), netip.MustParseAddrPort("0.0.0.0:7002"), netip.MustParseAddrPort("10.9.0.1:7003"),
			},
		}
		destination := netip.MustParseAddrPort(c.destination)
		if got := r.permits(destination); got != c.want {
			t.Errorf("%v: %s is open: %v", c.rules, c.destination, got)
		}
	}
}

// TestReachReadsOwnAddresses checks that the list of the machine's addresses is read
// again when it is old.
func TestReachReadsOwnAddresses(t *testing.T) {
	own, err := ownAddresses()
	if err != nil {
		t.Fatal(err)
	}
	allow, err := config.ParseAllow([]string{"0.0.0.0/0:*", "[::/0]:*"})
	if err != nil {
		t.Fatal(err)
	}
	r := &reach{allow: allow}
	for ip := range own {
		if destination := netip.AddrPortFrom(ip, 80); r.permits(destination) {
			t.Errorf("%s is open", destination)
		} else if text := r.denied(destination).Error(); ip.IsGlobalUnicast() && !strings.Contains(text, "own machine") {
			t.Error(text)
		}
	}
	if len(own) == 0 {
		t.Skip("this machine has no address but loopback")
	}
}
