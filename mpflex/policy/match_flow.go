package policy

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
)

// span is a range of integers, both ends included.
type span struct{ first, last int64 }

func (s span) has(n int64) bool { return s.first <= n && n <= s.last }

func (s span) String() string {
	if s.first == s.last {
		return fmt.Sprint(s.first)
	}
	return fmt.Sprintf("%d-%d", s.first, s.last)
}

type protocolIs Protocol

func (p protocolIs) holds(f *Flow, _ *Conditions) bool   { return f.Protocol == Protocol(p) }
func (p protocolIs) text() string                        { return Protocol(p).String() }
func (p protocolIs) found(f *Flow, _ *Conditions) string { return "protocol " + f.Protocol.String() }

type portIn []span

func (p portIn) holds(f *Flow, _ *Conditions) bool {
	port := int64(f.Dst.Port())
	for _, s := range p {
		if s.has(port) {
			return true
		}
	}
	return false
}
func (p portIn) text() string { return listed(p, span.String) }
func (p portIn) found(f *Flow, _ *Conditions) string {
	if f.Dst.Port() == 0 {
		return "port unknown"
	}
	return fmt.Sprintf("port %d", f.Dst.Port())
}

type uidIn []span

func (u uidIn) holds(f *Flow, _ *Conditions) bool {
	for _, s := range u {
		if s.has(f.UID) {
			return true
		}
	}
	return false
}
func (u uidIn) text() string { return listed(u, span.String) }
func (u uidIn) found(f *Flow, _ *Conditions) string {
	if f.UID < 0 {
		return "uid unknown"
	}
	return fmt.Sprintf("uid %d", f.UID)
}

type addressIn []network

// network is a prefix as two halves of an IPv6 address. An IPv4 prefix has the
// IPv4-mapped form.
type network struct {
	prefix            netip.Prefix
	high, low         uint64
	maskHigh, maskLow uint64
}

func newNetwork(prefix netip.Prefix) network {
	n := network{prefix: prefix}
	n.high, n.low = halves(prefix.Addr())
	bits := prefix.Bits() + 128 - prefix.Addr().BitLen()
	n.maskHigh = ^uint64(0) << max(64-bits, 0)
	n.maskLow = ^uint64(0) << min(max(128-bits, 0), 64)
	return n
}

func (n network) String() string {
	if n.prefix.IsSingleIP() {
		return n.prefix.Addr().String()
	}
	return n.prefix.String()
}

// halves returns the two halves of an address.
func halves(addr netip.Addr) (high, low uint64) {
	bytes := addr.As16()
	return binary.BigEndian.Uint64(bytes[:8]), binary.BigEndian.Uint64(bytes[8:])
}

func (a addressIn) holds(f *Flow, _ *Conditions) bool {
	addr := f.Dst.Addr()
	if !addr.IsValid() {
		return false
	}
	high, low := halves(addr)
	is4 := addr.Is4() || addr.Is4In6()
	for i := range a {
		n := &a[i]
		if (high^n.high)&n.maskHigh|(low^n.low)&n.maskLow == 0 && is4 == n.prefix.Addr().Is4() {
			return true
		}
	}
	return false
}
func (a addressIn) text() string { return listed(a, network.String) }
func (a addressIn) found(f *Flow, _ *Conditions) string {
	if !f.Dst.Addr().IsValid() {
		return "address unknown"
	}
	return "address " + f.Dst.Addr().String()
}

type processIs []glob

func (p processIs) holds(f *Flow, _ *Conditions) bool {
	return f.Process != "" && anyGlob(p, f.Process)
}
func (p processIs) text() string { return listed(p, glob.String) }
func (p processIs) found(f *Flow, _ *Conditions) string {
	return "process " + orUnknown(f.Process)
}

type packageIs []glob

func (p packageIs) holds(f *Flow, _ *Conditions) bool {
	for _, name := range f.Packages {
		if anyGlob(p, name) {
			return true
		}
	}
	return false
}
func (p packageIs) text() string { return listed(p, glob.String) }
func (p packageIs) found(f *Flow, _ *Conditions) string {
	return "package " + orUnknown(strings.Join(f.Packages, ", "))
}

// domainIn is a set of names. "*.example.org" means all names below example.org, at any
// depth, but not example.org.
type domainIn struct {
	patterns []string        // as in the file
	few      []string        // patterns without "*", if there are few
	exact    map[string]bool // names without "*", if there are many
	below    map[string]bool // the part after "*.", if there are many
}

// fewDomains is the number of patterns up to which a linear search is faster than maps.
const fewDomains = 8

func newDomainIn(patterns []string) *domainIn {
	d := &domainIn{patterns: patterns}
	if len(patterns) <= fewDomains {
		for _, pattern := range patterns {
			d.few = append(d.few, strings.TrimPrefix(pattern, "*"))
		}
		return d
	}
	d.exact, d.below = make(map[string]bool), make(map[string]bool)
	for _, pattern := range patterns {
		if parent, below := strings.CutPrefix(pattern, "*."); below {
			d.below[parent] = true
		} else {
			d.exact[pattern] = true
		}
	}
	return d
}

func (d *domainIn) holds(f *Flow, _ *Conditions) bool {
	name := f.Domain
	if name == "" {
		return false
	}
	for _, pattern := range d.few {
		if pattern[0] == '.' && len(name) > len(pattern) && strings.HasSuffix(name, pattern) || name == pattern {
			return true
		}
	}
	if d.exact == nil {
		return false
	}
	if d.exact[name] {
		return true
	}
	for dot := strings.IndexByte(name, '.'); dot >= 0; dot = strings.IndexByte(name, '.') {
		if name = name[dot+1:]; d.below[name] {
			return true
		}
	}
	return false
}
func (d *domainIn) text() string {
	return listed(d.patterns, func(pattern string) string { return pattern })
}
func (d *domainIn) found(f *Flow, _ *Conditions) string { return "domain " + orUnknown(f.Domain) }

// glob is a name in which * matches any characters and ? one character.
type glob struct {
	pattern string
	wild    bool // it contains * or ?
}

func newGlob(pattern string) glob { return glob{pattern, strings.ContainsAny(pattern, "*?")} }

func (g glob) String() string { return g.pattern }

func (g glob) matches(name string) bool {
	if !g.wild {
		return g.pattern == name
	}
	return wildMatch(g.pattern, name)
}

// wildMatch matches the whole name. On a mismatch, the last * takes one more character.
func wildMatch(pattern, name string) bool {
	at, star, resume := 0, -1, 0
	for i := 0; i < len(name); {
		switch {
		case at < len(pattern) && pattern[at] == '*':
			star, resume = at, i
			at++
		case at < len(pattern) && (pattern[at] == '?' || pattern[at] == name[i]):
			at++
			i++
		case star >= 0:
			resume++
			if next := star + 1; next < len(pattern) && pattern[next] != '*' && pattern[next] != '?' {
				skip := strings.IndexByte(name[resume:], pattern[next])
				if skip < 0 {
					return false
				}
				resume += skip
			}
			at, i = star+1, resume
		default:
			return false
		}
	}
	return strings.Trim(pattern[at:], "*") == ""
}

// shortest returns the minimum length of a matching name in bytes.
func (g glob) shortest() int { return len(g.pattern) - strings.Count(g.pattern, "*") }

func anyGlob(globs []glob, name string) bool {
	for _, g := range globs {
		if g.matches(name) {
			return true
		}
	}
	return false
}

func orUnknown(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}
