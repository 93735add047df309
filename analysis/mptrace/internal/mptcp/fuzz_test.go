package mptcp

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"mplab/analysis/mptrace/packet"
	"mplab/analysis/mptrace/tables"
)

// input reads choices from the bytes of a fuzz test; after the end, all are 0.
type input struct{ b []byte }

func (in *input) byte() byte {
	if len(in.b) == 0 {
		return 0
	}
	b := in.b[0]
	in.b = in.b[1:]
	return b
}

func (in *input) u64() uint64 {
	var b [8]byte
	in.b = in.b[copy(b[:], in.b):]
	return binary.LittleEndian.Uint64(b[:])
}

// packet plays one packet of the input.
func (in *input) packet(k *script) {
	ends := [...]end{wifi, lte, {wifi.addr, 40003}, {lte.addr, 40004}}
	what, shape := in.byte(), in.byte()
	from, to := ends[what&3], server
	isn := uint32(what&3)*1000 + 100
	peer := isn + 500
	if what&4 != 0 {
		from, to, isn, peer = to, from, peer, isn
	}
	flags := []uint8{
		packet.ACK, packet.ACK, packet.ACK, packet.ACK | packet.PSH, packet.SYN, packet.SYN | packet.ACK, packet.FIN | packet.ACK, packet.RST,
	}[what>>3&7]
	seq, ack := isn+uint32(in.byte()), peer+uint32(in.byte())
	payload := int(in.byte())
	if flags&packet.SYN != 0 {
		seq, payload = isn+uint32(what>>7), 0
	}
	if shape&0x80 != 0 {
		k.wait(int64(in.byte()) * 20)
	}
	dsn := k.first(keyS)
	if what&4 == 0 {
		dsn = k.first(keyC)
	}
	dsn += uint64(in.byte())
	k.send(from, to, flags, seq, ack, payload, in.option(k, shape, dsn, payload)...)
}

func (in *input) option(k *script, shape byte, dsn uint64, payload int) [][]byte {
	ssn, size := uint32(in.byte()), uint16(payload)
	if shape&0x40 != 0 {
		size = uint16(in.byte())
	}
	switch shape & 0x1f {
	case 0, 1, 2, 3:
		return [][]byte{dss(dsn, ssn, size)}
	case 4, 5:
		return [][]byte{dss32(dsn, ssn, size)}
	case 6:
		return [][]byte{dssSum(dsn, ssn, size, 1)}
	case 7:
		return [][]byte{dataFIN(dsn, ssn, size)}
	case 8, 9:
		return [][]byte{dataACK(dsn)}
	case 10:
		return [][]byte{dataACK32(dsn)}
	case 11:
		return [][]byte{k.capable()}
	case 12:
		return [][]byte{k.capable(keyS)}
	case 13:
		return [][]byte{k.capable(keyC, keyS)}
	case 14:
		return [][]byte{capableData(size)}
	case 15:
		return [][]byte{joinSYN(k.token(keyS), 7, in.byte(), shape>>5&1)}
	case 16:
		return [][]byte{joinSYNACK(joinHMAC(int32(k.version), keyS, keyC, 8, 7), 8, in.byte(), 0)}
	case 17:
		return [][]byte{joinACK(joinHMAC(int32(k.version), keyC, keyS, 7, 8))}
	case 18:
		return [][]byte{joinSYN(k.token(keyC), 7, in.byte(), 0)}
	case 19:
		return [][]byte{dss(in.u64(), ssn, size)}
	case 20:
		return [][]byte{dataACK(in.u64())}
	case 21:
		return [][]byte{option(4, 0, in.byte())}
	case 22:
		return [][]byte{option(5, in.byte()&1, in.byte())}
	case 23:
		return [][]byte{option(6, 0, byte(0), in.u64())}
	case 24:
		return [][]byte{option(7, 0, byte(0), in.u64())}
	case 25:
		return [][]byte{option(8, 0, in.byte())}
	case 26:
		return [][]byte{option(3, 1, in.byte(), []byte{1, 2, 3, 4})}
	}
	return nil
}

// FuzzEngine plays arbitrary packets; the rows must be consistent.
func FuzzEngine(f *testing.F) {
	handshake := []byte{
		0x20, 11, 0, 0, 0, 0, 0, 0x2c, 12, 0, 1, 0, 0, 0, 0x80, 13, 1, 1, 0, 0, 0, // MP_CAPABLE
		0x21, 15, 0, 0, 0, 0, 0, 1, 0x2d, 16, 0, 1, 0, 0, 0, 1, 0x81, 17, 1, 1, 0, 0, 0, // MP_JOIN
		0x04, 0, 1, 1, 50, 0, 1, 0x05, 0, 1, 1, 70, 20, 1, 0x00, 8, 1, 51, 0, 60, 0, // data on both, DATA_ACK
	}
	f.Add(uint8(0), handshake)
	f.Add(uint8(1), handshake)
	f.Fuzz(playAny)
}

func playAny(t *testing.T, version uint8, b []byte) {
	watch := newAccount()
	k := newScript(t, version&1, func(o *Options) {
		o.Observer = watch
		o.Payload = func(*Conn) Payload { return &payloads{} }
	})
	in := &input{b[:min(len(b), 2000)]}
	for len(in.b) > 0 {
		in.packet(k)
	}
	checkRows(t, k.end(), watch)
	if n := len(k.engine.tokens) + len(k.engine.orphans) + k.engine.waiting.Len(); n != 0 {
		t.Errorf("%d things are kept", n)
	}
}

// checkRows checks the invariants of all rows.
func checkRows(t *testing.T, r *tables.Result, watch *account) {
	t.Helper()
	subflows := map[int32]int32{}
	for _, s := range r.Subflows {
		if s.SubflowID != subflows[s.ConnectionID] {
			t.Errorf("subflow out of order: %+v", s)
		}
		subflows[s.ConnectionID]++
	}
	reinjected := map[[2]any]int64{}
	for _, i := range r.Reinjections {
		reinjected[[2]any{i.ConnectionID, i.Direction}] += i.Bytes
	}
	for i, c := range r.Connections {
		if c.ConnectionID != int32(i) || c.SubflowsAsked != subflows[c.ConnectionID] || c.Subflows > c.SubflowsAsked || c.SubflowsUsed > c.Subflows ||
			c.DurationS < 0 || c.BytesUp < 0 || c.Fallback != (c.FallbackCause != "") {
			t.Errorf("%+v", c)
		}
	}
	for _, d := range r.Directions {
		c := r.Connections[d.ConnectionID]
		if d.UniqueBytes > d.Bytes || d.MissingBytes < 0 || d.FlightMax < 0 {
			t.Errorf("%+v", d)
		}
		if d.Level != tables.LevelMPTCP {
			continue
		}
		want := map[string][2]int64{"up": {c.BytesUp, c.ReinjectedUp}, "down": {c.BytesDown, c.ReinjectedDn}}[d.Direction]
		if d.UniqueBytes != want[0] || d.ReinjectedBytes != want[1] || reinjected[[2]any{d.ConnectionID, d.Direction}] != want[1] {
			t.Errorf("%+v\n%+v, %d in reinjections", c, d, reinjected[[2]any{d.ConnectionID, d.Direction}])
		}
	}
	for s, bytes := range watch.carried {
		if bytes < 0 || watch.ends[s.Conn.ID] != 1 {
			t.Errorf("subflow %d of connection %d: %d bytes told, %d ends", s.ID, s.Conn.ID, bytes, watch.ends[s.Conn.ID])
		}
	}
	for id, fresh := range watch.fresh {
		c := r.Connections[id]
		if watch.plain[id] && c.Kind == "mptcp" {
			continue // its first bytes were reported as plain TCP
		}
		if fresh > c.BytesUp+c.BytesDown {
			t.Errorf("%d bytes are told of as new: %+v", fresh, c)
		}
	}
}

// account sums up the calls of an observer.
type account struct {
	observed
	carried map[*Sub]int64
	fresh   map[int32]int64
	ends    map[int32]int
	plain   map[int32]bool // plain at first
}

func newAccount() *account {
	return &account{carried: map[*Sub]int64{}, fresh: map[int32]int64{}, ends: map[int32]int{}, plain: map[int32]bool{}}
}

func (a *account) Subflow(s *Sub) {
	if s.ID == 0 {
		a.plain[s.Conn.ID] = !s.Conn.MPTCP
	}
}

func (a *account) Data(s *Sub, _ int, _ int64, lo, hi uint64, original *Sub) {
	a.carried[s] += int64(hi - lo)
	if original == nil {
		a.fresh[s.Conn.ID] += int64(hi - lo)
	}
}

func (a *account) End(c *Conn, _ *tables.Connection) {
	a.ends[c.ID]++
}

// TestAnyPackets plays random input of the fuzz test.
func TestAnyPackets(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for n := range 400 {
		b := make([]byte, 2000)
		for i := range b {
			if b[i] = byte(random.Uint32()); random.IntN(2) == 0 {
				b[i] &= 7
			}
		}
		playAny(t, uint8(n), b)
		if t.Failed() {
			t.Fatalf("packets %d", n)
		}
	}
}
