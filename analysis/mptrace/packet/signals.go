package packet

import "encoding/binary"

// Capable is MP_CAPABLE, RFC 8684 §3.1. In version 1, the SYN has no key, the
// SYN/ACK has SenderKey, and the third packet has both keys, with data also
// DataLen.
type Capable struct {
	Version     uint8
	Keys        uint8 // number of keys: 0, 1 or 2
	Checksum    bool  // the A bit: checksums are required
	HasDataLen  bool
	SenderKey   uint64
	ReceiverKey uint64
	DataLen     uint16
}

// JoinForm is the form of MP_JOIN, derived from its length.
type JoinForm uint8

// Values of [JoinForm].
const (
	JoinSYN JoinForm = iota
	JoinSYNACK
	JoinACK
)

// Join is MP_JOIN, RFC 8684 §3.2, in one of its three forms.
type Join struct {
	Form      JoinForm
	Backup    bool
	AddressID uint8
	Token     uint32   // SYN
	Nonce     uint32   // SYN and SYN/ACK
	HMAC      [20]byte // SYN/ACK: the first 8 bytes; ACK: 20
}

// AddAddr is ADD_ADDR, RFC 8684 §3.4.1 and RFC 6824 §3.4.1.
type AddAddr struct {
	Echo      bool
	AddressID uint8
	Addr      Addr
	Port      uint16 // 0: none
	HasHMAC   bool
	HMAC      uint64
}

// Prio is MP_PRIO, RFC 8684 §3.3.8.
type Prio struct {
	Backup       bool
	AddressID    uint8
	HasAddressID bool
}

// Reset is MP_TCPRST, RFC 8684 §3.6.
type Reset struct {
	Transient bool
	Reason    uint8
}

// SACKBlock is a SACK block: [Lo, Hi) in wire sequence numbers.
type SACKBlock struct{ Lo, Hi uint32 }

// find returns the first well-formed option of a kind and, for MPTCP, of a
// subtype.
func (p *Packet) find(kind, subtype byte) []byte {
	for b := p.Options; len(b) >= 2; {
		size := int(b[1])
		if b[0] == optionNOP {
			b = b[1:]
			continue
		}
		if b[0] == optionEnd || size < 2 || size > len(b) {
			return nil
		}
		if option := b[:size]; b[0] == kind && WellFormed(option) && (kind != optionMPTCP || b[2]>>4 == subtype) {
			return option
		}
		b = b[size:]
	}
	return nil
}

// MSS returns the maximum segment size. It is valid with HasMSS.
func (p *Packet) MSS() uint16 {
	if b := p.find(optionMSS, 0); b != nil {
		return binary.BigEndian.Uint16(b[2:])
	}
	return 0
}

// WindowScale returns the shift count, limited to 14 (RFC 7323 §2.3). It is
// valid with HasWindowScale.
func (p *Packet) WindowScale() uint8 {
	if b := p.find(optionWindowScale, 0); b != nil {
		return min(b[2], 14)
	}
	return 0
}

// SACK appends the SACK blocks to dst. It is valid with HasSACK.
func (p *Packet) SACK(dst []SACKBlock) []SACKBlock {
	if b := p.find(optionSACK, 0); b != nil {
		for b = b[2:]; len(b) > 0; b = b[8:] {
			dst = append(dst, SACKBlock{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])})
		}
	}
	return dst
}

// Capable returns MP_CAPABLE. It is valid with HasCapable.
func (p *Packet) Capable() Capable {
	b := p.find(optionMPTCP, subCapable)
	if b == nil {
		return Capable{}
	}
	c := Capable{Version: b[2] & 15, Checksum: b[3]&0x80 != 0}
	switch len(b) {
	case 12:
		c.Keys = 1
	case 20:
		c.Keys = 2
	case 22, 24:
		c.Keys, c.HasDataLen = 2, true
		c.DataLen = binary.BigEndian.Uint16(b[20:])
	}
	if c.Keys > 0 {
		c.SenderKey = binary.BigEndian.Uint64(b[4:])
	}
	if c.Keys > 1 {
		c.ReceiverKey = binary.BigEndian.Uint64(b[12:])
	}
	return c
}

// Join returns MP_JOIN. It is valid with HasJoin.
func (p *Packet) Join() Join {
	b := p.find(optionMPTCP, subJoin)
	var j Join
	switch len(b) {
	case 12:
		j.Form = JoinSYN
		j.Token = binary.BigEndian.Uint32(b[4:])
		j.Nonce = binary.BigEndian.Uint32(b[8:])
	case 16:
		j.Form = JoinSYNACK
		copy(j.HMAC[:], b[4:12])
		j.Nonce = binary.BigEndian.Uint32(b[12:])
	case 24:
		j.Form = JoinACK
		copy(j.HMAC[:], b[4:24])
		return j
	default:
		return j
	}
	j.Backup, j.AddressID = b[2]&1 != 0, b[3]
	return j
}

// AddAddr returns the first ADD_ADDR. It is valid with HasAddAddr.
func (p *Packet) AddAddr() AddAddr {
	a, _ := parseAddAddr(p.find(optionMPTCP, subAddAddr))
	return a
}

// parseAddAddr distinguishes the versions by length: version 0 has the IP
// version in the low bits of the first byte and no HMAC; version 1 has an echo
// bit, and without echo an HMAC of 8 bytes. The port is optional.
func parseAddAddr(b []byte) (AddAddr, bool) {
	if len(b) < 8 {
		return AddAddr{}, false
	}
	a := AddAddr{AddressID: b[3]}
	low, size, rest := b[2]&15, 0, len(b)-4
	switch {
	case low == 4 && (rest == 4 || rest == 6): // version 0
		size = 4
	case low == 6 && (rest == 16 || rest == 18):
		size = 16
	case low&1 != 0 && (rest == 4 || rest == 6): // echo
		a.Echo, size = true, 4
	case low&1 != 0 && (rest == 16 || rest == 18):
		a.Echo, size = true, 16
	case low&1 == 0 && (rest == 12 || rest == 14):
		a.HasHMAC, size = true, 4
	case low&1 == 0 && (rest == 24 || rest == 26):
		a.HasHMAC, size = true, 16
	default:
		return a, false
	}
	address, rest2 := b[4:4+size], b[4+size:]
	if size == 4 {
		a.Addr = Addr{0, 0xffff<<32 | uint64(binary.BigEndian.Uint32(address))}
	} else {
		a.Addr = Addr{binary.BigEndian.Uint64(address), binary.BigEndian.Uint64(address[8:])}
	}
	if len(rest2)&7 == 2 {
		a.Port = binary.BigEndian.Uint16(rest2)
		rest2 = rest2[2:]
	}
	if a.HasHMAC {
		a.HMAC = binary.BigEndian.Uint64(rest2)
	}
	return a, true
}

// RemoveAddr returns the address IDs of REMOVE_ADDR (RFC 8684 §3.4.2). They are
// valid as long as Options, and with HasRemoveAddr.
func (p *Packet) RemoveAddr() []byte {
	b := p.find(optionMPTCP, subRemoveAddr)
	if b == nil {
		return nil
	}
	return b[3:]
}

// Prio returns MP_PRIO. It is valid with HasPrio.
func (p *Packet) Prio() Prio {
	b := p.find(optionMPTCP, subPrio)
	if b == nil {
		return Prio{}
	}
	prio := Prio{Backup: b[2]&1 != 0}
	if len(b) == 4 {
		prio.AddressID, prio.HasAddressID = b[3], true
	}
	return prio
}

// FailDSN returns the data sequence number of MP_FAIL (RFC 8684 §3.7). It is
// valid with HasFail.
func (p *Packet) FailDSN() uint64 { return number(p.find(optionMPTCP, subFail)) }

// number reads the 64 bits after the first four bytes of an option.
func number(b []byte) uint64 {
	if b == nil {
		return 0
	}
	return binary.BigEndian.Uint64(b[4:])
}

// Reset returns MP_TCPRST. It is valid with HasReset.
func (p *Packet) Reset() Reset {
	b := p.find(optionMPTCP, subReset)
	if b == nil {
		return Reset{}
	}
	return Reset{Transient: b[2]&1 != 0, Reason: b[3]}
}
