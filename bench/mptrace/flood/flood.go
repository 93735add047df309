package flood

import (
	"bufio"
	"encoding/binary"
	"io"
)

// Kind defines the flows of a flood.
type Kind struct {
	Name, What string
	packets    []packet // packets of each flow
}

// packet is a segment of a flow.
type packet struct {
	flags   byte
	answer  bool   // sent by the server
	payload int    // in bytes, not captured
	later   uint32 // offset of its sequence number from the first one
	acked   uint32 // offset of its acknowledgement
	option  func(b []byte, flow uint64) []byte
}

const (
	fin = 1
	syn = 2
	rst = 4
	ack = 16
)

// Kinds lists all floods.
var Kinds = []Kind{
	{"syn", "SYN", []packet{{flags: syn}}},
	{"capable-v1", "SYN with MP_CAPABLE, version 1", []packet{{flags: syn, option: capable}}},
	{"capable-v0", "SYN with MP_CAPABLE and a key, version 0", []packet{{flags: syn, option: capableV0}}},
	{"join", "SYN with MP_JOIN and a random token", []packet{{flags: syn, option: join}}},
	{"refused", "SYN, and RST as answer", []packet{{flags: syn}, {flags: rst | ack, answer: true}}},
	{"data", "data segment alone", []packet{{flags: ack, payload: size}}},
	{"closed", "TCP handshake, a data segment and the close", []packet{
		{flags: syn}, {flags: syn | ack, answer: true}, {flags: ack}, {flags: ack, payload: size}, {flags: fin | ack, later: size},
		{flags: fin | ack, answer: true, acked: size + 1}, {flags: ack, later: size + 1, acked: 1},
	}},
	{"tcp", "TCP handshake and a data segment", []packet{
		{flags: syn}, {flags: syn | ack, answer: true}, {flags: ack}, {flags: ack, payload: size},
	}},
	{"mptcp", "MPTCP handshake, version 1, and a data segment", []packet{
		{flags: syn, option: capable}, {flags: syn | ack, answer: true, option: capableKey}, {flags: ack, option: capableKeys},
		{flags: ack, payload: size, option: capableData},
	}},
}

// Find returns the kind with a name, or false.
func Find(name string) (Kind, bool) {
	for _, k := range Kinds {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{}, false
}

// size is the payload of data segments in bytes.
const size = 1000

// PerFlow returns the number of packets per flow.
func (k Kind) PerFlow() int64 { return int64(len(k.packets)) }

// Write writes a capture (pcap, Ethernet) of the given number of packets,
// stepNS nanoseconds apart. Flows have different addresses and ports. It
// returns the error of the writer.
func (k Kind) Write(out io.Writer, packets, stepNS int64) error {
	w := bufio.NewWriterSize(out, 1<<18)
	_, _ = w.Write(fileHeader()) // the last write returns the error
	var b []byte
	for n := range packets {
		flow, i := n/k.PerFlow(), n%k.PerFlow()
		b = k.packets[i].record(b[:0], uint64(flow), startNS+n*stepNS)
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return w.Flush()
}

func fileHeader() []byte {
	const nanoseconds, version, snapshot, ethernet = 0xa1b23c4d, 2 | 4<<16, 1 << 18, 1
	le := binary.LittleEndian
	b := le.AppendUint32(nil, nanoseconds)
	b = le.AppendUint32(b, version)
	b = append(b, make([]byte, 8)...)
	b = le.AppendUint32(b, snapshot)
	return le.AppendUint32(b, ethernet)
}

// Offsets of the headers in a record.
const (
	etherAt = 16
	ipAt    = etherAt + 14
	tcpAt   = ipAt + 20

	startNS = 1_700_000_000e9
)

// record appends a packet of a flow as a record.
func (p *packet) record(b []byte, flow uint64, timeNS int64) []byte {
	le, be := binary.LittleEndian, binary.BigEndian
	b = append(b, make([]byte, tcpAt+20)...)
	if p.flags&syn != 0 {
		b = append(b, 2, 4, 5, 180, 4, 2, 1, 1, 1, 3, 3, 7) // MSS 1460, SACK permitted, scale 7
	}
	if p.option != nil {
		b = p.option(b, flow)
	}
	le.PutUint32(b, uint32(timeNS/1e9))
	le.PutUint32(b[4:], uint32(timeNS%1e9))
	le.PutUint32(b[8:], uint32(len(b)-etherAt))
	le.PutUint32(b[12:], uint32(len(b)-etherAt+p.payload))
	be.PutUint16(b[etherAt+12:], 0x0800)
	ip, tcp := b[ipAt:], b[tcpAt:]
	ip[0], ip[6], ip[8], ip[9] = 0x45, 0x40, 64, 6
	be.PutUint16(ip[2:], uint16(len(ip)+p.payload))
	from, to := end{clientOf(flow), uint32(random(flow))}, end{server, uint32(random(^flow))}
	if p.answer {
		from, to = to, from
	}
	from.put(ip[12:], tcp)
	to.put(ip[16:], tcp[2:])
	tcp[12], tcp[13], tcp[14] = byte(len(tcp)/4)<<4, p.flags, 0xff
	be.PutUint32(tcp[4:], from.isn+1+p.later)
	if p.flags&syn != 0 {
		be.PutUint32(tcp[4:], from.isn)
	}
	if p.flags&ack != 0 {
		be.PutUint32(tcp[8:], to.isn+1+p.acked)
	}
	return b
}

// end is one end of a flow.
type end struct {
	endpoint
	isn uint32
}

type endpoint struct {
	address uint32
	port    uint16
}

func (e endpoint) put(address, port []byte) {
	binary.BigEndian.PutUint32(address, e.address)
	binary.BigEndian.PutUint16(port, e.port)
}

var server = endpoint{0xc0a80001, 443}

// clientOf scatters flows over 10.0.0.0/8 and the upper half of the ports. It
// uses 39 bits of an odd multiple of the flow number, so the first 2³⁹ flows
// are all different.
func clientOf(flow uint64) endpoint {
	scattered := flow * 0x9e3779b97f4a7c15
	return endpoint{10<<24 | uint32(scattered)&(1<<24-1), 1<<15 | uint16(scattered>>24)}
}

// random returns a pseudo-random number derived from n (splitmix64).
func random(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// clientKey and serverKey return the keys of a flow's two ends.
func clientKey(flow uint64) uint64 { return random(flow + 1<<32) }
func serverKey(flow uint64) uint64 { return random(flow + 2<<32) }

// capable appends an MP_CAPABLE option of a SYN. Options are those of RFC 8684 §3.1 and
// §3.2, and RFC 6824 §3.1.
func capable(b []byte, _ uint64) []byte { return append(b, 30, 4, 1, 1) }

func capableV0(b []byte, flow uint64) []byte {
	return binary.BigEndian.AppendUint64(append(b, 30, 12, 0, 1), clientKey(flow))
}

func capableKey(b []byte, flow uint64) []byte {
	return binary.BigEndian.AppendUint64(append(b, 30, 12, 1, 1), serverKey(flow))
}

func capableKeys(b []byte, flow uint64) []byte {
	b = binary.BigEndian.AppendUint64(append(b, 30, 20, 1, 1), clientKey(flow))
	return binary.BigEndian.AppendUint64(b, serverKey(flow))
}

func capableData(b []byte, flow uint64) []byte {
	b = binary.BigEndian.AppendUint64(append(b, 30, 22, 1, 1), clientKey(flow))
	b = binary.BigEndian.AppendUint64(b, serverKey(flow))
	return append(b, size>>8, size&255, 1, 1)
}

func join(b []byte, flow uint64) []byte {
	b = binary.BigEndian.AppendUint32(append(b, 30, 12, 16, 1), uint32(clientKey(flow)>>32)) // the token
	return binary.BigEndian.AppendUint32(b, uint32(serverKey(flow)))
}
