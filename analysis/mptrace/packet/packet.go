package packet

import (
	"encoding/binary"
	"net/netip"
)

// Verdict is the result of decoding a frame.
type Verdict uint8

// Values of [Verdict].
const (
	TCP       Verdict = iota // a TCP segment; every header field is valid
	Other                    // not TCP over IP
	Fragment                 // a later IP fragment, which has no TCP header
	Truncated                // the capture ends before the end of the TCP header
	Hidden                   // the capture ends inside IPv6 extension headers: the protocol is unknown
	Malformed                // the bytes contradict themselves
	verdicts
)

// Verdicts is the number of verdicts, for arrays indexed by verdict.
const Verdicts = int(verdicts)

// TCP flags, RFC 9293 §3.1.
const (
	FIN = 1 << 0
	SYN = 1 << 1
	RST = 1 << 2
	PSH = 1 << 3
	ACK = 1 << 4
	URG = 1 << 5
)

// Addr is an IP address as two numbers in host order; IPv4 is mapped
// (::ffff:a.b.c.d), so Hi is 0 and Lo is 0x0000ffff_aabbccdd.
type Addr struct{ Hi, Lo uint64 }

// Netip converts the address to the type of the standard library.
func (a Addr) Netip() netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], a.Hi)
	binary.BigEndian.PutUint64(b[8:], a.Lo)
	return netip.AddrFrom16(b).Unmap()
}

func (a Addr) String() string { return a.Netip().String() }

// Quirk is a set of special properties of a segment.
type Quirk uint8

// Values of [Quirk].
const (
	// FirstFragment: the first fragment of a fragmented packet; Payload counts
	// only this fragment.
	FirstFragment Quirk = 1 << iota
	// OptionsCut: the capture ends inside the TCP options. Has and Options
	// describe the complete ones; there may have been more.
	OptionsCut
	// IPv6: the segment was in an IPv6 packet; IPID is invalid.
	IPv6
	// LengthDamaged: the IP header states more bytes than the frame had on the
	// wire; the length of the frame is used.
	LengthDamaged
)

// Packet is a decoded TCP segment.
type Packet struct {
	TimeNS int64 // since 1970 UTC, set by the caller

	Src, Dst Addr

	// DSN and DataAck are those of the DSS, with 32 or 64 bits as DSS states.
	DSN, DataAck uint64

	// Options are the completely captured TCP options. Data is the captured
	// part of the payload. Both point into the frame.
	Options []byte
	Data    []byte

	Seq, Ack     uint32
	TSVal, TSEcr uint32 // 0 without HasTimestamps
	SSN          uint32 // subflow sequence number of the mapping in DSS, relative to the initial one
	Payload      uint32 // size of the payload in bytes, captured or not
	Iface        int32  // interface number, set by the caller
	Has          Has    // set of options

	SrcPort, DstPort uint16
	Window           uint16 // as in the header, not scaled
	IPID             uint16 // IPv4 identification
	Checksum         uint16 // TCP checksum, as captured
	DSSLen           uint16 // length of the mapping in the DSS, including the DATA_FIN; 0: infinite mapping

	Flags  uint8
	DSS    DSSFlag // valid with HasDSS
	Quirks Quirk
	TTL    uint8 // TTL or hop limit
}

// DSSFlag is the set of parts of a data sequence signal (RFC 8684 §3.3). The
// low five bits are those on the wire.
type DSSFlag uint8

// Values of [DSSFlag].
const (
	DSSAck      DSSFlag = 1 << iota // DataAck is valid
	DSSAck64                        // DataAck has 64 bits
	DSSMap                          // DSN, SSN and DSSLen are valid
	DSSMap64                        // DSN has 64 bits
	DSSFin                          // DATA_FIN
	DSSChecksum                     // the mapping has a checksum (not a flag on the wire)
)

// Has is the set of options of a segment. It contains only options that were
// captured completely and have a valid length.
type Has uint32

// Values of [Has]. The bit of an MPTCP option is at its subtype number.
const (
	HasCapable Has = 1 << iota
	HasJoin
	HasDSS
	HasAddAddr
	HasRemoveAddr
	HasPrio
	HasFail
	HasFastclose
	HasReset
	// HasBad marks an MPTCP option whose length fits no known form.
	HasBad
	HasTimestamps
	HasSACK
	HasMSS
	HasWindowScale
	HasSACKPermitted

	// HasMPTCP is the set of all MPTCP options.
	HasMPTCP = HasCapable | HasJoin | HasDSS | HasAddAddr | HasRemoveAddr | HasPrio | HasFail | HasFastclose | HasReset
	// HasSignal is the set of the rare ones.
	HasSignal = HasMPTCP &^ HasDSS
)
