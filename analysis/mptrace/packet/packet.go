// Package packet decodes captured frames down to TCP and its MPTCP options.
//
// Decoding works on byte slices and never allocates: a caller keeps one
// [Packet] and decodes every frame into it. Lengths come from the IP header,
// not from the capture, so a frame that was cut after its last header still
// has its full payload length.
package packet

import "net/netip"

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

var verdictNames = [Verdicts]string{"tcp", "other", "fragment", "truncated", "hidden", "malformed"}

func (v Verdict) String() string { return verdictNames[v] }

// TCP flags, RFC 9293 §3.1.
const (
	FIN = 1 << 0
	SYN = 1 << 1
	RST = 1 << 2
	PSH = 1 << 3
	ACK = 1 << 4
)

// Addr is an IP address in 16 bytes; IPv4 is mapped (::ffff:a.b.c.d).
type Addr [16]byte

func (a Addr) String() string { return netip.AddrFrom16(a).Unmap().String() }

// Packet is a decoded TCP segment.
type Packet struct {
	TimeNS int64 // unix, set by the caller
	Iface  int32 // index of the interface, set by the caller

	Src, Dst         Addr
	SrcPort, DstPort uint16
	Seq, Ack         uint32
	Flags            uint8
	Window           uint16 // as in the header, not scaled

	// Payload is the number of payload bytes that were sent, captured or not.
	Payload int
	// FirstFragment marks the first fragment of a fragmented packet: Payload
	// counts this fragment alone.
	FirstFragment bool
	// OptionsCut marks that the capture ends inside the TCP options: what
	// Options holds was seen whole, but there may have been more.
	OptionsCut bool
	Options    Options
}
