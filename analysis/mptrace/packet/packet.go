package packet

import (
	"encoding/binary"
	"net/netip"
)

// Verdict says what became of a frame.
type Verdict uint8

// The verdicts of [Decode].
const (
	TCP       Verdict = iota // a TCP segment; every header field is valid
	Other                    // something else than TCP over IP
	Fragment                 // a later IP fragment: it has no TCP header
	Truncated                // the capture ends before the TCP header does
	Hidden                   // the capture ends inside IPv6 extension headers: TCP or not, nobody knows
	Malformed                // the bytes contradict themselves
	verdicts
)

// Verdicts is the number of verdicts, for tables indexed by them.
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

// Netip returns the address in the form of the standard library.
func (a Addr) Netip() netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], a.Hi)
	binary.BigEndian.PutUint64(b[8:], a.Lo)
	return netip.AddrFrom16(b).Unmap()
}

func (a Addr) String() string { return a.Netip().String() }

// Quirk marks what is special about a segment.
type Quirk uint8

// The quirks of a segment.
const (
	// FirstFragment: the first fragment of a fragmented packet; Payload counts this fragment alone.
	FirstFragment Quirk = 1 << iota
	// OptionsCut: the capture ends inside the TCP options. What Has and Options
	// tell was seen whole, but there may have been more.
	OptionsCut
	// IPv6: the segment came in IPv6; IPID means nothing.
	IPv6
	// LengthDamaged: the IP header tells more bytes than the frame had on the
	// wire; those of the frame count.
	LengthDamaged
)

// Packet is a decoded TCP segment.
type Packet struct {
	TimeNS int64 // unix, set by the caller

	Src, Dst Addr

	// DSN and DataAck are those of DSS, in 32 or 64 bits as DSS says.
	DSN, DataAck uint64

	// Options are the TCP options as far as they were captured whole, and Data
	// is the captured part of the payload. Both point into the frame.
	Options []byte
	Data    []byte

	Seq, Ack     uint32
	TSVal, TSEcr uint32 // with HasTimestamps
	SSN          uint32 // subflow sequence number of the mapping in DSS, relative to the initial one
	Payload      uint32 // payload bytes that were sent, captured or not
	Iface        int32  // number of the interface, set by the caller
	Has          Has    // which options there are

	SrcPort, DstPort uint16
	Window           uint16 // as in the header, not scaled
	IPID             uint16 // identification of IPv4
	Checksum         uint16 // of TCP, as captured
	DSSLen           uint16 // length of the mapping in DSS: 0 is an infinite mapping; includes the DATA_FIN

	Flags  uint8
	DSS    DSSFlag // with HasDSS
	Quirks Quirk
	TTL    uint8 // or hop limit
}

// DSSFlag tells what a data sequence signal holds, RFC 8684 §3.3. The low five
// bits are those on the wire.
type DSSFlag uint8

// The parts of a data sequence signal.
const (
	DSSAck      DSSFlag = 1 << iota // DataAck is valid
	DSSAck64                        // … and has 64 bits
	DSSMap                          // DSN, SSN and DSSLen are valid
	DSSMap64                        // … and DSN has 64 bits
	DSSFin                          // DATA_FIN
	DSSChecksum                     // the mapping has a checksum (not a flag on the wire)
)

// Has tells which options a segment carries. An option counts when it was
// captured whole and its length is right.
type Has uint32

// The options of a segment. MPTCP subtypes are at their number.
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

	// HasMPTCP are all options of MPTCP.
	HasMPTCP = HasCapable | HasJoin | HasDSS | HasAddAddr | HasRemoveAddr | HasPrio | HasFail | HasFastclose | HasReset
	// HasSignal are those that come seldom.
	HasSignal = HasMPTCP &^ HasDSS
)
