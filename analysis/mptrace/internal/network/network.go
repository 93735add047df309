package network

import (
	"fmt"
	"net/netip"
	"strings"
	"unicode"

	"mplab/analysis/mptrace/internal/tcp"
)

// Networks that are guessed from the name of an interface.
const (
	WiFi     = "wifi"
	Cellular = "cellular"
	Ethernet = "ethernet"
	Loopback = "loopback"
)

// usual lists prefixes of interface names on Linux and Android.
var usual = []struct{ prefix, network string }{
	{"wlan", WiFi}, {"wlp", WiFi}, {"wlx", WiFi}, {"wifi", WiFi}, {"ath", WiFi}, {"swlan", WiFi}, {"p2p", WiFi},
	{"rmnet", Cellular}, {"ccmni", Cellular}, {"pdp", Cellular}, {"wwan", Cellular}, {"wwp", Cellular},
	{"seth", Cellular}, {"clat", Cellular}, {"v4-rmnet", Cellular}, {"ppp", Cellular},
	{"eth", Ethernet}, {"en", Ethernet}, {"usb", Ethernet}, {"lo", Loopback},
}

// Rules map interfaces or addresses to networks. The zero value guesses from
// the usual names of interfaces.
type Rules struct {
	interfaces map[string]string
	prefixes   []prefixRule
}

type prefixRule struct {
	prefix  netip.Prefix
	network string
}

// Parse reads rules such as "wlan0=wifi", "192.168.0.0/16=wifi" and
// "10.1.2.3=cellular". Address rules take precedence over interface rules, and
// earlier address rules over later ones.
func Parse(rules []string) (*Rules, error) {
	r := &Rules{interfaces: map[string]string{}}
	for _, rule := range rules {
		what, network, found := strings.Cut(rule, "=")
		if !found || what == "" || !isName(network) {
			return nil, fmt.Errorf("network rule %q: want INTERFACE=NAME or ADDRESS[/BITS]=NAME, such as wlan0=wifi or 192.168.0.0/16=wifi", rule)
		}
		if prefix, err := parsePrefix(what); err == nil {
			r.prefixes = append(r.prefixes, prefixRule{prefix.Masked(), network})
			continue
		}
		if strings.Contains(what, "/") {
			return nil, fmt.Errorf("network rule %q: %q is no range of addresses, such as 192.168.0.0/16", rule, what)
		}
		if _, known := r.interfaces[what]; !known {
			r.interfaces[what] = network
		}
	}
	return r, nil
}

func parsePrefix(s string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	return netip.ParsePrefix(s)
}

func isName(s string) bool {
	for _, c := range s {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '-' && c != '_' {
			return false
		}
	}
	return s != ""
}

// OfFlow returns the network of a flow on an interface, or "" if it is unknown.
// Nil rules guess, as the zero value does.
func (r *Rules) OfFlow(iface string, f *tcp.Flow) string {
	if r == nil {
		r = &Rules{}
	}
	return r.Of(iface, f.Ends[0].Addr.Netip(), f.Ends[1].Addr.Netip())
}

// Of returns the network of traffic on an interface between two addresses, or
// "" if it is unknown. Either address may be the phone's.
func (r *Rules) Of(iface string, a, b netip.Addr) string {
	for _, rule := range r.prefixes {
		if rule.prefix.Contains(a) || rule.prefix.Contains(b) {
			return rule.network
		}
	}
	if network, known := r.interfaces[iface]; known {
		return network
	}
	for _, u := range usual {
		if strings.HasPrefix(iface, u.prefix) {
			return u.network
		}
	}
	return ""
}
