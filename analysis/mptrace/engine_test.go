package mptrace

import (
	"fmt"
	"slices"
	"testing"

	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// The two interfaces of the phone and the addresses used below.
var (
	phoneWiFi = endpoint{packet.Addr{15: 1}, 40001}
	phoneLTE  = endpoint{packet.Addr{15: 2}, 40002}
	origin    = endpoint{packet.Addr{15: 9}, 80}
	names     = []string{"wlan0", "rmnet0"}
)

// The keys of client and server in all tests.
const (
	keyC = 0x0102030405060708
	keyS = 0x1112131415161718
)

// talk is a conversation under construction: each packet 1 ms after the other.
type talk struct {
	engine *Engine
	now    int64
}

func newTalk() *talk { return &talk{NewEngine(), 1_000_000_000} }

type change func(*packet.Packet)

func (k *talk) send(from, to endpoint, flags uint8, seq, ack uint32, payload int, changes ...change) {
	k.now += 1_000_000
	p := packet.Packet{
		TimeNS: k.now, Src: from.addr, SrcPort: from.port, Dst: to.addr, DstPort: to.port,
		Flags: flags, Seq: seq, Ack: ack, Payload: payload,
	}
	if from == phoneLTE || to == phoneLTE {
		p.Iface = 1
	}
	for _, c := range changes {
		c(&p)
	}
	k.engine.Add(&p)
}

func (k *talk) result() *tables.Result { return k.engine.Result(names) }

func capable(keys ...uint64) change {
	return func(p *packet.Packet) {
		p.Options.Has |= packet.HasCapable
		p.Options.Capable = packet.Capable{Version: 1, Keys: uint8(len(keys))}
		if len(keys) > 0 {
			p.Options.Capable.SenderKey = keys[0]
		}
		if len(keys) > 1 {
			p.Options.Capable.ReceiverKey = keys[1]
		}
	}
}

func capableData(length uint16) change {
	return func(p *packet.Packet) {
		capable(keyC, keyS)(p)
		p.Options.Capable.HasDataLen, p.Options.Capable.DataLen = true, length
	}
}

func dss(dsn uint64, ssn uint32, length uint16) change {
	return func(p *packet.Packet) {
		p.Options.Has |= packet.HasDSS
		p.Options.DSS = packet.DSS{HasAck: true, HasMap: true, DSN64: true, DSN: dsn, SSN: ssn, Len: length}
	}
}

func dss32(dsn uint64, ssn uint32, length uint16) change {
	return func(p *packet.Packet) {
		dss(uint64(uint32(dsn)), ssn, length)(p)
		p.Options.DSS.DSN64 = false
	}
}

func dataFIN(p *packet.Packet) { p.Options.DSS.DataFIN = true }

func dataAck(p *packet.Packet) {
	p.Options.Has |= packet.HasDSS
	p.Options.DSS = packet.DSS{HasAck: true}
}

func has(bits packet.Has) change { return func(p *packet.Packet) { p.Options.Has |= bits } }

func joinWith(j packet.Join) change {
	return func(p *packet.Packet) { p.Options.Has, p.Options.Join = packet.HasJoin, j }
}

// open makes the handshake of a plain connection; both ISNs are given.
func (k *talk) open(from, to endpoint, isn, peerISN uint32) {
	k.send(from, to, packet.SYN, isn, 0, 0)
	k.send(to, from, packet.SYN|packet.ACK, peerISN, isn+1, 0)
	k.send(from, to, packet.ACK, isn+1, peerISN+1, 0)
}

// openMPTCP makes the handshake of an MPTCP connection over WiFi with the
// initial sequence numbers 100 and 200.
func (k *talk) openMPTCP() {
	k.send(phoneWiFi, origin, packet.SYN, 100, 0, 0, capable())
	k.send(origin, phoneWiFi, packet.SYN|packet.ACK, 200, 101, 0, capable(keyS))
	k.send(phoneWiFi, origin, packet.ACK, 101, 201, 0, capable(keyC, keyS))
}

// joinLTE adds a subflow with the initial sequence numbers 300 and 400.
func (k *talk) joinLTE(backup, wrongHMAC bool) {
	token, _ := tokenAndIDSN(1, keyS)
	var ofServer, ofClient [20]byte
	copy(ofServer[:8], joinHMAC(1, keyS, keyC, 8, 7))
	copy(ofClient[:], joinHMAC(1, keyC, keyS, 7, 8))
	if wrongHMAC {
		ofClient[0] ^= 1
	}
	k.send(phoneLTE, origin, packet.SYN, 300, 0, 0, joinWith(packet.Join{Token: token, Nonce: 7, Backup: backup}))
	k.send(origin, phoneLTE, packet.SYN|packet.ACK, 400, 301, 0, joinWith(packet.Join{Form: packet.JoinSYNACK, Nonce: 8, HMAC: ofServer}))
	k.send(phoneLTE, origin, packet.ACK, 301, 401, 0, joinWith(packet.Join{Form: packet.JoinACK, HMAC: ofClient}))
}

func idsn(key uint64) uint64 {
	_, dsn := tokenAndIDSN(1, key)
	return dsn
}

func TestPlainTCP(t *testing.T) {
	k := newTalk()
	const isn = 0xffffff00 // wraps around
	k.send(phoneWiFi, origin, packet.SYN, isn, 0, 0)
	k.open(phoneWiFi, origin, isn, 200)
	for i := range uint32(3) {
		k.send(phoneWiFi, origin, packet.ACK, isn+1+i*1000, 201, 1000)
	}
	k.send(phoneWiFi, origin, packet.ACK, 1+1000-0x100+500, 201, 1000) // seen before
	k.send(origin, phoneWiFi, packet.ACK|packet.FIN, 201, 2745, 50)
	k.send(phoneWiFi, origin, packet.ACK|packet.FIN, 2745, 252, 0)
	k.send(origin, phoneWiFi, packet.ACK, 252, 2746, 0)
	r := k.result()
	c, s := r.Connections[0], r.Subflows[0]
	if len(r.Connections) != 1 || c.Kind != "tcp" || c.MPTCPVersion != -1 || c.BytesUp != 3000 || c.BytesDown != 50 ||
		c.Closed != "fin" || c.Interfaces != "wlan0" || c.Subflows != 1 || c.Token != "" {
		t.Errorf("%+v", c)
	}
	if s.SYNRetries != 1 || s.RTTHandshakeMS != nil || s.PayloadUp != 4000 || s.UniqueUp != 3000 || !s.Established ||
		s.RetransmittedSegmentsUp != 1 || s.RetransmittedBytesUp != 1000 || s.SegmentsUp != 8 || s.SegmentsDown != 3 {
		t.Errorf("%+v", s)
	}
}

func TestPortReuse(t *testing.T) {
	k := newTalk()
	k.open(phoneWiFi, origin, 100, 200)
	k.send(phoneWiFi, origin, packet.ACK, 101, 201, 10)
	k.open(phoneWiFi, origin, 5000, 6000)
	k.send(phoneWiFi, origin, packet.ACK, 5001, 6001, 20)
	k.send(origin, phoneWiFi, packet.RST, 6001, 0, 0)
	r := k.result()
	if len(r.Connections) != 2 || r.Connections[0].BytesUp != 10 || r.Connections[1].BytesUp != 20 ||
		r.Connections[0].Closed != "open" || r.Connections[1].Closed != "rst" {
		t.Errorf("%+v", r.Connections)
	}
}

func TestHandshakeNotSeen(t *testing.T) {
	k := newTalk()
	k.send(origin, phoneWiFi, packet.ACK, 201, 101, 1000)
	k.send(phoneWiFi, origin, packet.ACK, 101, 1201, 0)
	r := k.result()
	if c := r.Connections[0]; c.ClientPort != 40001 || c.BytesDown != 1000 || c.BytesUp != 0 || c.Subflows != 1 {
		t.Errorf("%+v", c)
	}
}

func TestRefused(t *testing.T) {
	k := newTalk()
	k.send(phoneWiFi, origin, packet.SYN, 100, 0, 0)
	k.send(origin, phoneWiFi, packet.RST|packet.ACK, 0, 101, 0)
	r := k.result()
	if c := r.Connections[0]; c.Subflows != 0 || c.Closed != "rst" || r.Subflows[0].Established {
		t.Errorf("%+v", c)
	}
}

func TestTwoSubflows(t *testing.T) {
	k := newTalk()
	up, down := idsn(keyC), idsn(keyS)
	k.openMPTCP()
	k.send(phoneWiFi, origin, packet.ACK, 101, 201, 50, capableData(50))
	k.joinLTE(true, false)
	// One mapping of 3000 bytes over three segments; only the last tells it.
	k.send(origin, phoneWiFi, packet.ACK, 201, 151, 1000)
	k.send(origin, phoneWiFi, packet.ACK, 1201, 151, 1000)
	k.send(origin, phoneWiFi, packet.ACK, 2201, 151, 1000, dss(down+1, 1, 3000))
	// 1000 new bytes on LTE, then 500 of WiFi's again (reinjected), twice.
	k.send(origin, phoneLTE, packet.ACK, 401, 301, 1000, dss32(down+3001, 1, 1000))
	k.send(origin, phoneLTE, packet.ACK, 1401, 301, 500, dss32(down+2001, 1001, 500))
	k.send(origin, phoneLTE, packet.ACK, 1401, 301, 500, dss32(down+2001, 1001, 500))
	// The subflow's own bytes under new sequence numbers: neither.
	k.send(origin, phoneLTE, packet.ACK, 1901, 301, 100, dss32(down+3001, 1501, 100))
	k.send(origin, phoneWiFi, packet.ACK, 3201, 151, 10, dss(down+4001, 3001, 11), dataFIN)
	k.send(phoneWiFi, origin, packet.ACK, 151, 3211, 0, dss(up+51, 0, 1), dataFIN)
	r := k.result()
	token, _ := tokenAndIDSN(1, keyS)
	c := r.Connections[0]
	if len(r.Connections) != 1 || c.Kind != "mptcp" || c.MPTCPVersion != 1 || c.BytesUp != 50 || c.BytesDown != 4010 ||
		c.ReinjectedDown != 500 || c.ReinjectedUp != 0 || c.Closed != "fin" || c.Fallback || c.Subflows != 2 ||
		c.Interfaces != "wlan0,rmnet0" || c.Token != fmt.Sprintf("%08x", token) {
		t.Errorf("%+v", c)
	}
	if s := r.Subflows[1]; s.Role != "additional" || !s.Backup || !s.Established || *s.JoinDelayMS != 4 ||
		*s.RTTHandshakeMS != 2 || s.RetransmittedBytesDown != 500 || s.UniqueDown != 1600 {
		t.Errorf("%+v", s)
	}
	if r.Warnings != (tables.Warnings{}) {
		t.Errorf("%+v", r.Warnings)
	}
}

func TestJoins(t *testing.T) {
	k := newTalk()
	k.openMPTCP()
	k.joinLTE(false, true)
	r := k.result()
	if r.Warnings.HMACMismatch != 1 || r.Subflows[1].Established || r.Connections[0].Subflows != 1 {
		t.Errorf("%+v %+v", r.Warnings, r.Subflows)
	}

	k = newTalk() // the connection itself was not captured
	k.joinLTE(false, false)
	k.send(origin, phoneLTE, packet.ACK, 401, 301, 700, dss(1<<60, 1, 700))
	r = k.result()
	token, _ := tokenAndIDSN(1, keyS)
	if c := r.Connections[0]; c.Kind != "mptcp" || c.Fallback || c.Subflows != 1 || c.BytesDown != 700 || c.Token != fmt.Sprintf("%08x", token) || r.Subflows[0].JoinDelayMS != nil {
		t.Errorf("%+v", c)
	}
}

func TestFallback(t *testing.T) {
	plainServer := func(k *talk) {
		k.send(phoneWiFi, origin, packet.SYN, 100, 0, 0, capable())
		k.send(origin, phoneWiFi, packet.SYN|packet.ACK, 200, 101, 0)
		k.send(phoneWiFi, origin, packet.ACK, 101, 201, 0)
		k.send(phoneWiFi, origin, packet.ACK, 101, 201, 30)
	}
	noDSS := func(k *talk) {
		k.openMPTCP()
		k.send(phoneWiFi, origin, packet.ACK, 101, 201, 30, capableData(30))
		k.send(origin, phoneWiFi, packet.ACK, 201, 131, 0)
	}
	infinite := func(k *talk) {
		k.openMPTCP()
		k.send(phoneWiFi, origin, packet.ACK, 101, 201, 10, capableData(10))
		k.send(origin, phoneWiFi, packet.ACK, 201, 111, 0, dataAck)
		k.send(phoneWiFi, origin, packet.ACK, 111, 201, 10, dss(idsn(keyC)+11, 11, 0))
		k.send(phoneWiFi, origin, packet.ACK, 121, 201, 10)
	}
	for name, play := range map[string]func(*talk){"plain server": plainServer, "no DSS": noDSS, "infinite mapping": infinite} {
		k := newTalk()
		play(k)
		if c := k.result().Connections[0]; !c.Fallback || c.Kind != "mptcp" || c.BytesUp != 30 || c.Subflows != 1 {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestFastclose(t *testing.T) {
	k := newTalk()
	k.openMPTCP()
	k.send(phoneWiFi, origin, packet.RST|packet.ACK, 101, 201, 0, has(packet.HasFastclose))
	r := k.result()
	if r.Connections[0].Closed != "fastclose" || r.Subflows[0].Closed != "rst" {
		t.Errorf("%+v", r.Connections[0])
	}
}

func TestServerOpensSubflow(t *testing.T) {
	k := newTalk()
	k.openMPTCP()
	token, _ := tokenAndIDSN(1, keyC)
	k.send(origin, phoneLTE, packet.SYN, 400, 0, 0, joinWith(packet.Join{Token: token, Nonce: 7}))
	k.send(phoneLTE, origin, packet.SYN|packet.ACK, 300, 401, 0, joinWith(packet.Join{Form: packet.JoinSYNACK, Nonce: 8}))
	k.send(origin, phoneLTE, packet.ACK, 401, 301, 100, dss(idsn(keyS)+1, 1, 100))
	r := k.result()
	if c, s := r.Connections[0], r.Subflows[1]; c.BytesDown != 100 || s.UniqueDown != 100 || s.ClientPort != 40002 || s.SegmentsUp != 1 {
		t.Errorf("%+v\n%+v", c, s)
	}
}

// TestOrderOfMappings plays the same segments in all orders: the bytes stay.
func TestOrderOfMappings(t *testing.T) {
	down := idsn(keyS)
	segments := []func(*talk){
		func(k *talk) { k.send(origin, phoneWiFi, packet.ACK, 201, 101, 100, dss(down+1, 1, 250)) },
		func(k *talk) { k.send(origin, phoneWiFi, packet.ACK, 301, 101, 100) },
		func(k *talk) { k.send(origin, phoneWiFi, packet.ACK, 401, 101, 100, dss(down+251, 251, 50)) },
		func(k *talk) { k.send(origin, phoneWiFi, packet.ACK, 351, 101, 100) },
	}
	order := []int{0, 1, 2, 3}
	permute(order, 0, func() {
		k := newTalk()
		k.openMPTCP()
		for _, i := range order {
			segments[i](k)
		}
		r := k.result()
		if r.Connections[0].BytesDown != 300 || r.Warnings.UnmappedBytes != 0 {
			t.Errorf("%v: %+v %+v", slices.Clone(order), r.Connections[0], r.Warnings)
		}
	})
}

func permute(a []int, from int, each func()) {
	if from == len(a) {
		each()
		return
	}
	for i := from; i < len(a); i++ {
		a[from], a[i] = a[i], a[from]
		permute(a, from+1, each)
		a[from], a[i] = a[i], a[from]
	}
}
