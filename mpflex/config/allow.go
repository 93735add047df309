package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Allow is the list of destinations that a proxy serves; what is not in it is
// denied. The empty list denies everything.
type Allow []rule

type rule struct {
	prefix netip.Prefix
	ports  []uint16 // nil: every port
}

// ParseAllow reads rules of the form "CIDR:port,port" and "CIDR:*"; an IPv6
// prefix stands in brackets: "[fd00::/8]:443".
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

// Permits tells whether a destination may be reached.
func (a Allow) Permits(destination netip.AddrPort) bool {
	ip := destination.Addr().Unmap()
	return slices.ContainsFunc(a, func(r rule) bool {
		return r.prefix.Contains(ip) && (r.ports == nil || slices.Contains(r.ports, destination.Port()))
	})
}
