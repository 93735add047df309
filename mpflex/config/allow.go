package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Allow is the list of destinations that a proxy permits. All others are denied: the
// empty list denies everything.
type Allow []rule

type rule struct {
	prefix netip.Prefix
	ports  []uint16 // nil: every port
}

// ParseAllow parses rules of the form "CIDR:port,port" and "CIDR:*". An IPv6 prefix is
// in brackets: "[fd00::/8]:443".
func ParseAllow(rules []string) (Allow, error) {
	var allow Allow
	for i, text := range rules {
		rule, err := parseRule(text)
		if err != nil {
			return nil, fmt.Errorf("allow[%d]: %q: %w", i, text, err)
		}
		allow = append(allow, rule)
	}
	return allow, nil
}

func parseRule(text string) (rule, error) {
	at := strings.LastIndexByte(text, ':')
	if at < 0 || strings.HasSuffix(text[at:], "]") {
		return rule{}, fmt.Errorf(`give the ports, for example "10.65.0.0/16:80,443" or "10.65.0.0/16:*"`)
	}
	network, ports := text[:at], text[at+1:]
	if inner, ok := strings.CutPrefix(network, "["); ok {
		network = strings.TrimSuffix(inner, "]")
	} else if strings.Contains(network, ":") {
		return rule{}, fmt.Errorf(`an IPv6 prefix stands in brackets, for example "[fd00::/8]:443"`)
	}
	prefix, err := netip.ParsePrefix(network)
	if err != nil {
		return rule{}, fmt.Errorf("%q is not a network in CIDR form", network)
	}
	if prefix != prefix.Masked() {
		return rule{}, fmt.Errorf("%s has bits set after its length; did you mean %s?", prefix, prefix.Masked())
	}
	r := rule{prefix: prefix}
	if ports == "*" {
		return r, nil
	}
	for _, text := range strings.Split(ports, ",") {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return rule{}, fmt.Errorf("%q is not a port (1 to 65535)", text)
		}
		r.ports = append(r.ports, uint16(port))
	}
	return r, nil
}

// special holds ranges that belong to the proxy's own machine, to a cloud's metadata
// service (link-local), or to no single host. Only a rule within such a range permits a
// part of it: 0.0.0.0/0 permits none of them.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), // this host (RFC 6890); Linux connects 0.0.0.0 to loopback
	netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("169.254.0.0/16"), // link-local
	netip.MustParsePrefix("224.0.0.0/4"),    // multicast
	netip.MustParsePrefix("255.255.255.255/32"),
	netip.MustParsePrefix("::/128"),
	netip.MustParsePrefix("::1/128"),
	netip.MustParsePrefix("fe80::/10"), // link-local
	netip.MustParsePrefix("ff00::/8"),  // multicast
}

// Permits reports whether a rule permits a destination. An IPv4-mapped address counts
// as its IPv4 address. Port 0 is never permitted.
func (a Allow) Permits(destination netip.AddrPort) bool {
	return slices.ContainsFunc(a, func(r rule) bool { return r.permits(destination) })
}

// Names reports whether a rule for exactly this address permits a destination. With
// port, the rule must also list the port instead of "*".
func (a Allow) Names(destination netip.AddrPort, port bool) bool {
	return slices.ContainsFunc(a, func(r rule) bool {
		return r.prefix.IsSingleIP() && (r.ports != nil || !port) && r.permits(destination)
	})
}

func (r rule) permits(destination netip.AddrPort) bool {
	ip, port := destination.Addr().Unmap(), destination.Port()
	if port == 0 || !r.prefix.Contains(ip) || r.ports != nil && !slices.Contains(r.ports, port) {
		return false
	}
	return !slices.ContainsFunc(special, func(s netip.Prefix) bool { return s.Contains(ip) && r.prefix.Bits() < s.Bits() })
}
