package labtest

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
)

// MPTCP option subtypes, RFC 8684 §8.
const (
	Capable = iota
	Join
	DSS
	AddAddr
	RemoveAddr
	Prio
	Fail
	Fastclose
	Reset
)

// TCP flags.
const (
	FIN = 1 << iota
	SYN
	RST
	PSH
	ACK
)

const (
	ethernet    = 14
	optionNOP   = 1
	optionMPTCP = 30
	protocolTCP = 6
)

// Segment is a TCP segment in a complete Ethernet frame. Its methods change the
// frame.
type Segment struct {
	ip, tcp []byte // from the IP header and from the TCP header to the end of the packet
}

// View returns the TCP segment in a frame, or false.
func View(frame []byte) (Segment, bool) {
	if len(frame) < ethernet+40 {
		return Segment{}, false
	}
	ip := frame[ethernet:]
	head, total, protocol := 0, 0, byte(0)
	switch binary.BigEndian.Uint16(frame[12:]) {
	case 0x0800:
		head, total, protocol = int(ip[0]&15)*4, int(binary.BigEndian.Uint16(ip[2:])), ip[9]
	case 0x86dd:
		head, total, protocol = 40, 40+int(binary.BigEndian.Uint16(ip[4:])), ip[6]
	}
	if protocol != protocolTCP || total > len(ip) || total < head+20 || total < head+int(ip[head+12]>>4)*4 {
		return Segment{}, false
	}
	return Segment{ip[:total], ip[head:total]}, true
}

// Flags returns the flags of the TCP header.
func (s Segment) Flags() byte { return s.tcp[13] }

// Payload returns the payload.
func (s Segment) Payload() []byte { return s.tcp[int(s.tcp[12]>>4)*4:] }

// options calls f with each option, starting at its kind byte.
func (s Segment) options(f func(option []byte)) {
	for b := s.tcp[20 : int(s.tcp[12]>>4)*4]; len(b) >= 2 && b[0] != 0; {
		if b[0] == optionNOP {
			b = b[1:]
			continue
		}
		size := int(b[1])
		if size < 2 || size > len(b) {
			return
		}
		f(b[:size])
		b = b[size:]
	}
}

// Alter calls f with each MPTCP option of a subtype, starting at its kind byte,
// and updates the checksum. f may change the option.
func (s Segment) Alter(subtype int, f func(option []byte)) {
	s.options(func(o []byte) {
		if o[0] == optionMPTCP && len(o) > 2 && int(o[2]>>4) == subtype {
			f(o)
		}
	})
	s.Seal()
}

// Strip overwrites the MPTCP options of the subtypes (none: all) with NOPs.
func (s Segment) Strip(subtypes ...int) {
	for subtype := range Reset + 1 {
		if len(subtypes) == 0 || slices.Contains(subtypes, subtype) {
			s.Alter(subtype, func(o []byte) {
				for i := range o {
					o[i] = optionNOP
				}
			})
		}
	}
}

// Seal recomputes the checksum.
func (s Segment) Seal() {
	binary.BigEndian.PutUint16(s.tcp[16:], 0)
	sum := uint32(protocolTCP) + uint32(len(s.tcp))
	addresses := s.ip[12:20]
	if s.ip[0]>>4 == 6 {
		addresses = s.ip[8:40]
	}
	for _, b := range [][]byte{addresses, s.tcp} {
		for ; len(b) >= 2; b = b[2:] {
			sum += uint32(binary.BigEndian.Uint16(b))
		}
		if len(b) == 1 {
			sum += uint32(b[0]) << 8
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(s.tcp[16:], ^uint16(sum))
}

// OnTCP returns a middlebox for TCP segments. It drops a segment if keep
// returns false, and passes all other frames.
func OnTCP(keep func(direction int, s Segment) bool) Middlebox {
	return func(direction int, frame []byte) []byte {
		if s, ok := View(frame); ok && !keep(direction, s) {
			return nil
		}
		return frame
	}
}

// BlackHole returns a middlebox that drops all TCP segments.
func BlackHole() Middlebox { return OnTCP(func(int, Segment) bool { return false }) }

// Lossy returns a middlebox that drops a share of the segments with payload.
// The random choice is the same for the same seed.
func Lossy(share float64, seed uint64) Middlebox {
	var dice [2]*rand.Rand
	for direction := range dice {
		dice[direction] = rand.New(rand.NewPCG(seed, uint64(direction)))
	}
	return OnTCP(func(direction int, s Segment) bool {
		return len(s.Payload()) == 0 || dice[direction].Float64() >= share
	})
}

// Stripping returns a middlebox that removes MPTCP options of the subtypes
// (none: all).
func Stripping(subtypes ...int) Middlebox {
	return OnTCP(func(_ int, s Segment) bool {
		s.Strip(subtypes...)
		return true
	})
}
