package model

import (
	"net/netip"
	"slices"
)

// PrefixDelays maps an address to a delay class: class 0 is "no prefix", class i the i-th prefix. Frames of one class
// keep their order. Frames of different classes have different paths behind the link and can overtake each other.
type PrefixDelays struct {
	lengths []int                // the existing prefix lengths, longest first
	class   map[netip.Prefix]int // masked prefix → class
	delay   []int64              // by class, in ns, one way
}

// NewPrefixDelays takes one-way delays in ms.
func NewPrefixDelays(delayMs map[netip.Prefix]float64) *PrefixDelays {
	p := &PrefixDelays{class: map[netip.Prefix]int{}, delay: []int64{0}}
	for prefix, ms := range delayMs {
		p.class[prefix] = len(p.delay)
		p.delay = append(p.delay, nanoseconds(ms))
		if !slices.Contains(p.lengths, prefix.Bits()) {
			p.lengths = append(p.lengths, prefix.Bits())
		}
	}
	slices.Sort(p.lengths)
	slices.Reverse(p.lengths)
	return p
}

// classOf returns the class of the longest prefix that contains addr; 0 if there is no such prefix or addr is invalid.
func (p *PrefixDelays) classOf(addr netip.Addr) int {
	for _, bits := range p.lengths {
		prefix, err := addr.Prefix(bits)
		if err != nil { // longer than an address of this family, or addr is invalid
			continue
		}
		if class, found := p.class[prefix]; found {
			return class
		}
	}
	return 0
}

// nanoseconds converts ms to ns.
func nanoseconds(ms float64) int64 { return int64(ms*1e6 + 0.5) }
