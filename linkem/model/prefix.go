package model

import (
	"net/netip"
	"slices"
)

// PrefixDelays finds the delay class of an address: class 0 is "no prefix", class i the i-th prefix. Frames of one
// class keep their order; frames of different classes have different ways behind the link and may pass each other.
type PrefixDelays struct {
	lengths []int                // prefix lengths that occur, longest first
	class   map[netip.Prefix]int // masked prefix → class
	delay   []int64              // by class, nanoseconds, one way
}

// NewPrefixDelays takes one-way delays in milliseconds.
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

// classOf gives the class of the longest prefix that holds addr; 0 if none, or if addr is not valid.
func (p *PrefixDelays) classOf(addr netip.Addr) int {
	for _, bits := range p.lengths {
		prefix, err := addr.Prefix(bits)
		if err != nil { // longer than an address of this family, or no address
			continue
		}
		if class, found := p.class[prefix]; found {
			return class
		}
	}
	return 0
}

// nanoseconds converts milliseconds.
func nanoseconds(ms float64) int64 { return int64(ms*1e6 + 0.5) }
