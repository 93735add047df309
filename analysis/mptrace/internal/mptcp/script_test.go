package mptcp

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"mplab/analysis/mptrace/internal/tcp"
	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// Endpoints of the phone's two paths and of the server.
var (
	wifi   = end{netip.MustParseAddr("10.0.0.1"), 40001}
	lte    = end{netip.MustParseAddr("10.0.1.1"), 40002}
	server = end{netip.MustParseAddr("10.9.0.9"), 80}
)

// Keys of client and server in all tests.
const (
	keyC = 0x0102030405060708
	keyS = 0x1112131415161718
)

type end struct {
	addr netip.Addr
	port uint16
}

// script is a conversation under construction. Packets are 1 ms apart.
type script struct {
	t        testing.TB
	version  uint8 // of MPTCP
	now      int64
	tracker  *tcp.Tracker
	engine   *Engine
	sink     *tables.Sink
	warnings tables.Warnings
	conn     *Conn // of the last packet
}

const start = 1_000_000_000

func newScript(t testing.TB, version uint8, change ...func(*Options)) *script {
	t.Helper()
	k := &script{t: t, version: version, now: start, sink: tables.NewMemorySink(tables.All, 0)}
	options := Options{
		Interfaces: func(i int32) string { return []string{"wlan0", "rmnet0"}[i] },
		Network: func(iface string, _ *tcp.Flow) string {
			return map[string]string{"wlan0": "wifi", "rmnet0": "cellular"}[iface]
		},
	}
	for _, c := range change {
		c(&options)
	}
	k.engine = New(options, k.sink, &k.warnings)
	k.tracker = newTracker(k.engine)
	return k
}

func newTracker(e *Engine) *tcp.Tracker {
	return tcp.NewTracker(tcp.Options{OnEnd: e.EndFlow, OnRetransmission: e.Retransmission})
}

// eachVersion runs a test for both versions of MPTCP.
func eachVersion(t *testing.T, test func(t *testing.T, version uint8)) {
	t.Helper()
	for version := range uint8(2) {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) { test(t, version) })
	}
}

// send passes a packet to the engine. options are TCP options; payload is a
// number of bytes that were not captured, or a string of captured ones.
func (k *script) send(from, to end, flags uint8, seq, ack uint32, payload any, options ...[]byte) {
	k.t.Helper()
	k.now += 1e6
	frame, size := frameOf(from, to, flags, seq, ack, payload, options)
	k.sendFrame(frame, size, from == lte || to == lte)
}

func frameOf(from, to end, flags uint8, seq, ack uint32, payload any, options [][]byte) ([]byte, int) {
	var opts, data []byte
	for _, o := range options {
		opts = append(opts, o...)
	}
	for len(opts)%4 != 0 {
		opts = append(opts, 1)
	}
	size, ok := payload.(int)
	if !ok {
		data = []byte(payload.(string))
		size = len(data)
	}
	ip := make([]byte, 40)
	ip[0], ip[8], ip[9] = 0x45, 64, 6
	binary.BigEndian.PutUint16(ip[2:], uint16(40+len(opts)+size))
	copy(ip[12:], from.addr.AsSlice())
	copy(ip[16:], to.addr.AsSlice())
	h := ip[20:]
	binary.BigEndian.PutUint16(h, from.port)
	binary.BigEndian.PutUint16(h[2:], to.port)
	binary.BigEndian.PutUint32(h[4:], seq)
	binary.BigEndian.PutUint32(h[8:], ack)
	h[12], h[13] = byte(20+len(opts))<<2, flags
	binary.BigEndian.PutUint16(h[14:], 0xfff0)
	return append(append(ip, opts...), data...), 40 + len(opts) + size
}

func (k *script) sendFrame(frame []byte, size int, onLTE bool) {
	k.t.Helper()
	p := packet.Packet{TimeNS: k.now}
	if onLTE {
		p.Iface = 1
	}
	if v := packet.Decode(packet.LinkRaw, frame, size, &p); v != packet.TCP {
		k.t.Fatalf("a packet of the script is %v: % x", v, frame)
	}
	var seg tcp.Segment
	k.tracker.Add(&p, &seg)
	k.engine.Add(&seg)
	if seg.Flow == nil { // late
		return
	}
	if s, _ := seg.Flow.Owner.(*Sub); s != nil {
		k.conn = s.Conn
	}
}

// end ends all flows and returns the rows.
func (k *script) end() *tables.Result {
	k.tracker.Close()
	k.engine.Close()
	return k.sink.Result(nil, k.warnings)
}

func (k *script) wait(ms int64) { k.now += ms * 1e6 }

// Options as bytes.

func option(subtype, low byte, rest ...any) []byte {
	b := []byte{30, 0, subtype<<4 | low}
	for _, r := range rest {
		switch r := r.(type) {
		case byte:
			b = append(b, r)
		case uint16:
			b = binary.BigEndian.AppendUint16(b, r)
		case uint32:
			b = binary.BigEndian.AppendUint32(b, r)
		case uint64:
			b = binary.BigEndian.AppendUint64(b, r)
		case []byte:
			b = append(b, r...)
		default:
			panic(fmt.Sprintf("%T", r))
		}
	}
	b[1] = byte(len(b))
	return b
}

const hmacFlag = 1 // H of MP_CAPABLE

func (k *script) capable(keys ...uint64) []byte {
	rest := []any{byte(hmacFlag)}
	for _, key := range keys {
		rest = append(rest, key)
	}
	return option(0, k.version, rest...)
}

func capableData(size uint16) []byte {
	return option(0, 1, byte(hmacFlag), uint64(keyC), uint64(keyS), size)
}

// The flags of DSS on the wire.
const (
	dssAck = 1 << iota
	dssAck64
	dssMap
	dssMap64
	dssFin
)

func dss(dsn uint64, ssn uint32, size uint16) []byte {
	return option(2, 0, byte(dssMap|dssMap64), dsn, ssn, size)
}

func dss32(dsn uint64, ssn uint32, size uint16) []byte {
	return option(2, 0, byte(dssMap), uint32(dsn), ssn, size)
}

func dssSum(dsn uint64, ssn uint32, size, sum uint16) []byte {
	return option(2, 0, byte(dssMap), uint32(dsn), ssn, size, sum)
}

func dataFIN(dsn uint64, ssn uint32, size uint16) []byte {
	return option(2, 0, byte(dssMap|dssMap64|dssFin), dsn, ssn, size)
}

func dataACK(ack uint64) []byte { return option(2, 0, byte(dssAck|dssAck64), ack) }

func dataACK32(ack uint64) []byte { return option(2, 0, byte(dssAck), uint32(ack)) }

func joinSYN(token, nonce uint32, id byte, backup byte) []byte {
	return option(1, backup, id, token, nonce)
}

func joinSYNACK(hmac []byte, nonce uint32, id byte, backup byte) []byte {
	return option(1, backup, id, hmac[:8], nonce)
}

func joinACK(hmac []byte) []byte { return option(1, 0, byte(0), hmac[:20]) }

func windowScale(shift byte) []byte { return []byte{3, 3, shift} }

// Conversations.

func (k *script) token(key uint64) uint32 {
	token, _ := tokenAndIDSN(int32(k.version), key)
	return token
}

// first returns the data sequence number of the first byte of a side.
func (k *script) first(key uint64) uint64 {
	_, idsn := tokenAndIDSN(int32(k.version), key)
	return idsn + 1
}

// open plays the handshake of a plain connection.
func (k *script) open(from, to end, isn, peerISN uint32) {
	k.t.Helper()
	k.send(from, to, packet.SYN, isn, 0, 0)
	k.send(to, from, packet.SYN|packet.ACK, peerISN, isn+1, 0)
	k.send(from, to, packet.ACK, isn+1, peerISN+1, 0)
}

// openMPTCP plays the handshake of an MPTCP connection over WiFi with the
// initial sequence numbers 100 and 200.
func (k *script) openMPTCP() {
	k.t.Helper()
	syn := k.capable()
	if k.version == 0 {
		syn = k.capable(keyC)
	}
	k.send(wifi, server, packet.SYN, 100, 0, 0, syn)
	k.send(server, wifi, packet.SYN|packet.ACK, 200, 101, 0, k.capable(keyS))
	k.send(wifi, server, packet.ACK, 101, 201, 0, k.capable(keyC, keyS))
}

// joinLTE adds a subflow with the initial sequence numbers 300 and 400 and the
// address IDs 2 and 3.
func (k *script) joinLTE() {
	k.t.Helper()
	k.joinFrom(lte, 300, 400, 0)
}

func (k *script) joinFrom(from end, isn, peerISN uint32, backup byte) {
	k.t.Helper()
	ofServer := joinHMAC(int32(k.version), keyS, keyC, 8, 7)
	ofClient := joinHMAC(int32(k.version), keyC, keyS, 7, 8)
	k.send(from, server, packet.SYN, isn, 0, 0, joinSYN(k.token(keyS), 7, 2, backup))
	k.send(server, from, packet.SYN|packet.ACK, peerISN, isn+1, 0, joinSYNACK(ofServer, 8, 3, 0))
	k.send(from, server, packet.ACK, isn+1, peerISN+1, 0, joinACK(ofClient))
}

// down sends data of the server with a separate mapping: offset is the data
// offset, `at` the subflow offset.
func (k *script) down(to end, at uint32, size int, offset uint64) {
	k.t.Helper()
	isn := map[end]uint32{wifi: 200, lte: 400}[to]
	peer := map[end]uint32{wifi: 101, lte: 301}[to]
	k.send(server, to, packet.ACK, isn+1+at, peer, size, dss(k.first(keyS)+offset, 1+at, uint16(size)))
}

// ack acknowledges the server's data: `at` on the subflow, offset at data
// level.
func (k *script) ack(from end, at uint32, offset uint64) {
	k.t.Helper()
	isn := map[end]uint32{wifi: 200, lte: 400}[from]
	mine := map[end]uint32{wifi: 101, lte: 301}[from]
	k.send(from, server, packet.ACK, mine, isn+1+at, 0, dataACK(k.first(keyS)+offset))
}
