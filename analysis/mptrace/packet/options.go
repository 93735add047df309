package packet

import "encoding/binary"

// TCP option kinds, RFC 9293 §3.2, RFC 7323, RFC 2018, RFC 8684 §8.
const (
	optionEnd           = 0
	optionNOP           = 1
	optionMSS           = 2
	optionWindowScale   = 3
	optionSACKPermitted = 4
	optionSACK          = 5
	optionTimestamps    = 8
	optionMPTCP         = 30
)

// MPTCP option subtypes, RFC 8684 §3 and RFC 6824 §8.
const (
	subCapable = iota
	subJoin
	subDSS
	subAddAddr
	subRemoveAddr
	subPrio
	subFail
	subFastclose
	subReset
	subtypes
)

// Start of the options of almost all segments: NOP, NOP, timestamps; and the
// usual forms of DSS in Linux: 64 bits, an acknowledgement with or without a
// mapping, no checksum.
const (
	TimestampsAlone = 0x0101080a
	DSSAck64Alone   = 0x1e0c2000 | uint32(DSSAck|DSSAck64)
	DSSMap64Alone   = 0x1e1a2000 | uint32(DSSAck|DSSAck64|DSSMap|DSSMap64)
)

// usualDSS maps the flags of a DSS to its length, 0 for unusual ones: it has a
// DATA_ACK, and neither a DATA_FIN nor a checksum.
var usualDSS = [16]uint8{
	DSSAck:                                8,
	DSSAck | DSSAck64:                     12,
	DSSAck | DSSMap:                       18,
	DSSAck | DSSMap | DSSMap64:            22,
	DSSAck | DSSAck64 | DSSMap:            22,
	DSSAck | DSSAck64 | DSSMap | DSSMap64: 26,
}

// UsualDSS returns the flags and the place of the DSS in a packet whose options
// from place `at` on are one usual DSS and NOPs, at most two of them before it.
// It returns 0 if they are not.
func UsualDSS(b []byte, at int) (DSSFlag, int) {
	if len(b) < at+8 {
		return 0, 0
	}
	if b[at] == optionNOP && b[at+1] == optionNOP {
		at += 2
	}
	head := binary.BigEndian.Uint32(b[at:])
	size := usualDSS[head&15]
	if head&^15 != optionMPTCP<<24|uint32(size)<<16|subDSS<<12 || size == 0 {
		return 0, 0
	}
	end := at + int(size)
	for end < len(b) && b[end] == optionNOP {
		end++
	}
	if end != len(b) {
		return 0, 0
	}
	return DSSFlag(head & 15), at
}

// parse reads the TCP options in b, which may be truncated, and stops at the
// first incomplete one. The fast path comes first: timestamps, DSS, and at most
// two NOPs.
func (p *Packet) parse(b []byte) {
	p.Has, p.DSS, p.Options = 0, 0, b
	if len(b) >= 12 && binary.BigEndian.Uint32(b) == TimestampsAlone {
		p.TSVal, p.TSEcr = binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
		p.Has = HasTimestamps
		b = b[12:]
	} else {
		p.TSVal, p.TSEcr = 0, 0
	}
	if len(b) >= 6 && b[0] == optionNOP && b[1] == optionNOP && b[2] == optionMPTCP {
		b = b[2:]
	}
	if len(b) >= 4 && b[0] == optionMPTCP {
		switch head := binary.BigEndian.Uint32(b); {
		case head == DSSMap64Alone && len(b) >= 26:
			h := (*[26]byte)(b)
			p.DataAck, p.DSN = binary.BigEndian.Uint64(h[4:12]), binary.BigEndian.Uint64(h[12:20])
			p.SSN, p.DSSLen = binary.BigEndian.Uint32(h[20:24]), binary.BigEndian.Uint16(h[24:26])
			p.Has, p.DSS = p.Has|HasDSS, DSSAck|DSSAck64|DSSMap|DSSMap64
			b = b[26:]
		case head == DSSAck64Alone && len(b) >= 12:
			p.DataAck = binary.BigEndian.Uint64(b[4:])
			p.Has, p.DSS = p.Has|HasDSS, DSSAck|DSSAck64
			b = b[12:]
		default:
			b = p.leadingDSS(b)
		}
	}
	if len(b) > 2 || (len(b) == 2 && b[0] != optionNOP) {
		p.parseAny(b)
	}
}

// leadingDSS reads a DSS in any form at the start of the options and returns
// the rest.
func (p *Packet) leadingDSS(b []byte) []byte {
	size := int(b[1])
	if size > len(b) || b[2]>>4 != subDSS || !p.parseDSS(b[:size]) {
		return b
	}
	p.Has |= HasDSS
	return b[size:]
}

// parseAny parses options of any kind.
func (p *Packet) parseAny(b []byte) {
	for len(b) >= 2 {
		kind, size := b[0], int(b[1])
		if kind == optionNOP {
			b = b[1:]
			continue
		}
		if kind == optionEnd || size < 2 || size > len(b) {
			return
		}
		switch option := b[:size]; {
		case kind == optionMPTCP:
			p.parseMPTCP(option)
		case !WellFormed(option):
		case kind == optionTimestamps:
			p.TSVal, p.TSEcr = binary.BigEndian.Uint32(b[2:]), binary.BigEndian.Uint32(b[6:])
			p.Has |= HasTimestamps
		case kind == optionSACK:
			p.Has |= HasSACK
		case kind == optionMSS:
			p.Has |= HasMSS
		case kind == optionWindowScale:
			p.Has |= HasWindowScale
		case kind == optionSACKPermitted:
			p.Has |= HasSACKPermitted
		}
		b = b[size:]
	}
}

func (p *Packet) parseMPTCP(b []byte) {
	if len(b) < 3 {
		p.Has |= HasBad
		return
	}
	subtype := b[2] >> 4
	switch {
	case subtype >= subtypes: // experimental or unknown: ignored
	case subtype == subDSS && p.Has&HasDSS != 0: // the first one is used
	case subtype == subDSS && p.parseDSS(b), subtype != subDSS && WellFormed(b):
		p.Has |= 1 << subtype
	default:
		p.Has |= HasBad
	}
}

// WellFormed reports whether an option has the length of a known form. parseDSS
// checks DSS instead.
func WellFormed(b []byte) bool {
	size := len(b)
	switch b[0] {
	case optionMSS:
		return size == 4
	case optionWindowScale:
		return size == 3
	case optionSACKPermitted:
		return size == 2
	case optionSACK:
		return size >= 10 && size%8 == 2
	case optionTimestamps:
		return size == 10
	case optionMPTCP:
		return size >= 3 && wellFormedMPTCP(b)
	}
	return false
}

func wellFormedMPTCP(b []byte) bool {
	switch size := len(b); b[2] >> 4 {
	case subCapable:
		return size == 4 || size == 12 || size == 20 || size == 22 || size == 24
	case subJoin:
		return size == 12 || size == 16 || size == 24
	case subAddAddr:
		_, ok := parseAddAddr(b)
		return ok
	case subRemoveAddr:
		return size >= 4
	case subPrio:
		return size == 3 || size == 4
	case subReset:
		return size == 4
	case subFail, subFastclose:
		return size == 12
	}
	return false
}

// parseDSS reads a data sequence signal (RFC 8684 §3.3). It returns false if
// the length contradicts the flags.
func (p *Packet) parseDSS(b []byte) bool {
	if len(b) < 4 {
		return false
	}
	flags := DSSFlag(b[3]) & (DSSAck | DSSAck64 | DSSMap | DSSMap64 | DSSFin)
	at := b[4:]
	if flags&DSSAck != 0 {
		size := 4 + int(flags&DSSAck64)<<1 // 4 or 8
		if len(at) < size {
			return false
		}
		p.DataAck, at = wide(at[:size]), at[size:]
	}
	if flags&DSSMap != 0 {
		size := 4 + int(flags&DSSMap64)>>1
		if len(at) < size+6 {
			return false
		}
		p.DSN, at = wide(at[:size]), at[size:]
		p.SSN, p.DSSLen = binary.BigEndian.Uint32(at), binary.BigEndian.Uint16(at[4:])
		if at = at[6:]; len(at) == 2 {
			flags |= DSSChecksum
			at = nil
		}
	}
	if len(at) != 0 {
		return false
	}
	p.DSS = flags
	return true
}

// wide reads a number of 4 or 8 bytes.
func wide(b []byte) uint64 {
	if len(b) == 8 {
		return binary.BigEndian.Uint64(b)
	}
	return uint64(binary.BigEndian.Uint32(b))
}
