package packet

import "encoding/binary"

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
)

// Has tells which MPTCP options a segment carries.
type Has uint16

// The MPTCP options of a segment.
const (
	HasCapable    Has = 1 << subCapable
	HasJoin       Has = 1 << subJoin
	HasDSS        Has = 1 << subDSS
	HasAddAddr    Has = 1 << subAddAddr
	HasRemoveAddr Has = 1 << subRemoveAddr
	HasPrio       Has = 1 << subPrio
	HasFail       Has = 1 << subFail
	HasFastclose  Has = 1 << subFastclose
	HasReset      Has = 1 << subReset
	// HasBad marks an MPTCP option whose length fits no known form.
	HasBad Has = 1 << 15
)

// Options holds the MPTCP options of one segment. A field is valid only when
// its bit in Has is set.
type Options struct {
	Has     Has
	Capable Capable
	Join    Join
	DSS     DSS
	// Backup is the B bit of MP_PRIO.
	Backup bool
	// FailDSN is the data sequence number of MP_FAIL.
	FailDSN uint64
}

// Capable is MP_CAPABLE, RFC 8684 §3.1. SYN of version 1: no key; SYN/ACK:
// SenderKey; third ACK: both, and on data also DataLen.
type Capable struct {
	Version     uint8
	Keys        uint8 // how many keys there are: 0, 1 or 2
	HasDataLen  bool
	SenderKey   uint64
	ReceiverKey uint64
	DataLen     uint16
}

// Join is MP_JOIN, RFC 8684 §3.2, in one of its three forms.
type Join struct {
	Form      JoinForm
	Backup    bool
	AddressID uint8
	Token     uint32   // SYN
	Nonce     uint32   // SYN and SYN/ACK
	HMAC      [20]byte // SYN/ACK: the first 8 bytes; ACK: 20
}

// JoinForm is the form of MP_JOIN, known from its length.
type JoinForm uint8

// The three forms of MP_JOIN.
const (
	JoinSYN JoinForm = iota
	JoinSYNACK
	JoinACK
)

// DSS is the data sequence signal, RFC 8684 §3.3.
type DSS struct {
	HasAck, Ack64 bool
	HasMap, DSN64 bool
	DataFIN       bool
	Ack           uint64
	DSN           uint64
	SSN           uint32 // relative to the subflow's initial sequence number
	Len           uint16 // 0: infinite mapping; includes the DATA_FIN
}

// parse reads TCP options; it stops at the first that is not whole.
func (o *Options) parse(b []byte) {
	o.Has = 0
	for len(b) > 0 {
		switch b[0] {
		case 0:
			return
		case 1:
			b = b[1:]
			continue
		}
		if len(b) < 2 {
			return
		}
		size := int(b[1])
		if size < 2 || size > len(b) {
			return
		}
		if b[0] == 30 && size >= 3 {
			o.mptcp(b[:size])
		}
		b = b[size:]
	}
}

func (o *Options) mptcp(b []byte) {
	ok := false
	subtype := b[2] >> 4
	switch subtype {
	case subCapable:
		ok = o.Capable.parse(b)
	case subJoin:
		ok = o.Join.parse(b)
	case subDSS:
		ok = o.DSS.parse(b)
	case subPrio:
		o.Backup = b[2]&1 != 0
		ok = len(b) == 3 || len(b) == 4
	case subFail:
		if ok = len(b) == 12; ok {
			o.FailDSN = binary.BigEndian.Uint64(b[4:])
		}
	case subFastclose:
		ok = len(b) == 12
	case subAddAddr:
		ok = len(b) >= 8
	case subRemoveAddr:
		ok = len(b) >= 4
	case subReset:
		ok = len(b) == 4
	default: // experimental or unknown: of no concern here
		return
	}
	if ok {
		o.Has |= 1 << subtype
	} else {
		o.Has |= HasBad
	}
}

func (c *Capable) parse(b []byte) bool {
	*c = Capable{Version: b[2] & 15}
	switch len(b) {
	case 4:
	case 12:
		c.Keys = 1
	case 22, 24:
		c.HasDataLen = true
		c.DataLen = binary.BigEndian.Uint16(b[20:])
		c.Keys = 2
	case 20:
		c.Keys = 2
	default:
		return false
	}
	if c.Keys > 0 {
		c.SenderKey = binary.BigEndian.Uint64(b[4:])
	}
	if c.Keys > 1 {
		c.ReceiverKey = binary.BigEndian.Uint64(b[12:])
	}
	return true
}

func (j *Join) parse(b []byte) bool {
	*j = Join{Backup: b[2]&1 != 0}
	switch len(b) {
	case 12:
		j.Form = JoinSYN
		j.AddressID = b[3]
		j.Token = binary.BigEndian.Uint32(b[4:])
		j.Nonce = binary.BigEndian.Uint32(b[8:])
	case 16:
		j.Form = JoinSYNACK
		j.AddressID = b[3]
		copy(j.HMAC[:], b[4:12])
		j.Nonce = binary.BigEndian.Uint32(b[12:])
	case 24:
		j.Form = JoinACK
		copy(j.HMAC[:], b[4:24])
	default:
		return false
	}
	return true
}

func (d *DSS) parse(b []byte) bool {
	if len(b) < 4 {
		return false
	}
	flags := b[3]
	*d = DSS{HasAck: flags&1 != 0, Ack64: flags&2 != 0, HasMap: flags&4 != 0, DSN64: flags&8 != 0, DataFIN: flags&16 != 0}
	ackSize, dsnSize, mapSize := 4, 4, 0
	if d.Ack64 {
		ackSize = 8
	}
	if !d.HasAck {
		ackSize = 0
	}
	if d.DSN64 {
		dsnSize = 8
	}
	if d.HasMap {
		mapSize = dsnSize + 6
	}
	need := 4 + ackSize + mapSize
	if len(b) != need && (!d.HasMap || len(b) != need+2) { // +2: checksum
		return false
	}
	b = b[4:]
	if d.HasAck {
		d.Ack = number(b[:ackSize])
		b = b[ackSize:]
	}
	if d.HasMap {
		d.DSN = number(b[:dsnSize])
		d.SSN = binary.BigEndian.Uint32(b[dsnSize:])
		d.Len = binary.BigEndian.Uint16(b[dsnSize+4:])
	}
	return true
}

func number(b []byte) uint64 {
	if len(b) == 8 {
		return binary.BigEndian.Uint64(b)
	}
	return uint64(binary.BigEndian.Uint32(b))
}
