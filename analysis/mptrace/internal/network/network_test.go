package network

import (
	"net/netip"
	"strings"
	"testing"

	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
)

func TestOf(t *testing.T) {
	rules, err := Parse([]string{"192.168.0.0/16=home", "10.9.9.9=tunnel", "fd00::/8=wifi", "if3=cellular", "wlan1=guest"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ iface, a, b, want string }{
		{"rmnet0", "100.64.1.2", "203.0.113.1", Cellular},
		{"wlan0", "10.0.0.2", "203.0.113.1", WiFi},
		{"wlan0", "192.168.1.2", "203.0.113.1", "home"},
		{"wlan0", "203.0.113.1", "192.168.1.2", "home"},
		{"rmnet0", "10.9.9.9", "203.0.113.1", "tunnel"},
		{"eth7", "fd00::1", "2001:db8::1", WiFi},
		{"if3", "10.0.0.2", "203.0.113.1", Cellular},
		{"wlan1", "10.0.0.2", "203.0.113.1", "guest"},
		{"lo", "127.0.0.1", "127.0.0.1", Loopback},
		{"", "10.0.0.2", "203.0.113.1", ""},
		{"tun0", "10.0.0.2", "203.0.113.1", ""},
	} {
		if got := rules.Of(c.iface, netip.MustParseAddr(c.a), netip.MustParseAddr(c.b)); got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}

func TestWithoutRulesTheInterfaceTells(t *testing.T) {
	flow := &tcp.Flow{Ends: [2]tcp.Endpoint{{Addr: packet.Addr{Lo: 0xffff_0a000001}}, {Addr: packet.Addr{Lo: 0xffff_0a000002}}}}
	rules, err := Parse([]string{"10.0.0.2=guest"})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := (*Rules)(nil).OfFlow("wlan0", flow), rules.OfFlow("wlan0", flow); a != WiFi || b != "guest" {
		t.Errorf("%q without rules, %q with one", a, b)
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	for _, bad := range []string{"wlan0", "=wifi", "wlan0=", "wlan0=wi fi", "10.0.0.0/40=wifi"} {
		if _, err := Parse([]string{bad}); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
