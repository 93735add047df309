package packet

import (
	"reflect"
	"slices"
	"testing"
)

// segmentWith returns an IPv4 segment with TCP options, padded to whole words.
func segmentWith(options []byte) []byte {
	for len(options)%4 != 0 {
		options = append(options, optionEnd)
	}
	b := []byte{
		0x45, 0, 0, byte(40 + len(options)), 0, 1, 0x40, 0, 64, protoTCP, 0, 0, 10, 64, 1, 2, 10, 65, 0, 2,
		0x9c, 0x40, 0, 80, 1, 2, 3, 4, 10, 11, 12, 13, byte(5+len(options)/4) << 4, ACK, 1, 0xf6, 0, 0, 0, 0,
	}
	return append(b, options...)
}

func decodeOptions(t *testing.T, options []byte) *Packet {
	t.Helper()
	var p Packet
	if v := Decode(LinkRaw, segmentWith(options), 0, &p); v != TCP {
		t.Fatal(v)
	}
	return &p
}

const key1, key2 = 0x1122334455667788, 0x0102030405060708

func TestCapable(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       Capable
	}{
		{"v1 SYN", "1e 04 01 81", Capable{Version: 1, Checksum: true}},
		{"v1 SYN/ACK", "1e 0c 01 01 11 22 33 44 55 66 77 88", Capable{Version: 1, Keys: 1, SenderKey: key1}},
		{
			"v1 ACK", "1e 14 01 01 11 22 33 44 55 66 77 88 01 02 03 04 05 06 07 08",
			Capable{Version: 1, Keys: 2, SenderKey: key1, ReceiverKey: key2},
		},
		{
			"v1 data", "1e 16 01 01 11 22 33 44 55 66 77 88 01 02 03 04 05 06 07 08 00 20",
			Capable{Version: 1, Keys: 2, SenderKey: key1, ReceiverKey: key2, HasDataLen: true, DataLen: 32},
		},
		{
			"v1 data with checksum", "1e 18 01 81 11 22 33 44 55 66 77 88 01 02 03 04 05 06 07 08 00 20 ab cd",
			Capable{Version: 1, Checksum: true, Keys: 2, SenderKey: key1, ReceiverKey: key2, HasDataLen: true, DataLen: 32},
		},
		{"v0 SYN", "1e 0c 00 81 11 22 33 44 55 66 77 88", Capable{Checksum: true, Keys: 1, SenderKey: key1}},
		{
			"v0 ACK", "1e 14 00 01 11 22 33 44 55 66 77 88 01 02 03 04 05 06 07 08",
			Capable{Keys: 2, SenderKey: key1, ReceiverKey: key2},
		},
	} {
		if p := decodeOptions(t, bytesOf(t, c.text)); p.Has != HasCapable || p.Capable() != c.want {
			t.Errorf("%s: %b %+v", c.name, p.Has, p.Capable())
		}
	}
}

func TestJoin(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       Join
	}{
		{"SYN", "1e 0c 10 02 aa bb cc dd 00 00 00 07", Join{Form: JoinSYN, AddressID: 2, Token: 0xaabbccdd, Nonce: 7}},
		{"SYN, backup", "1e 0c 11 02 aa bb cc dd 00 00 00 07", Join{Form: JoinSYN, Backup: true, AddressID: 2, Token: 0xaabbccdd, Nonce: 7}},
		{
			"SYN/ACK", "1e 10 11 03 01 02 03 04 05 06 07 08 00 00 00 09",
			Join{Form: JoinSYNACK, Backup: true, AddressID: 3, Nonce: 9, HMAC: [20]byte{1, 2, 3, 4, 5, 6, 7, 8}},
		},
		{
			"ACK", "1e 18 10 00 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 02",
			Join{Form: JoinACK, HMAC: [20]byte{0: 1, 19: 2}},
		},
	} {
		if p := decodeOptions(t, bytesOf(t, c.text)); p.Has != HasJoin || p.Join() != c.want {
			t.Errorf("%s: %b %+v", c.name, p.Has, p.Join())
		}
	}
}

// TestDSS covers all forms of DSS: every set of flags, with and without
// checksum, with and without timestamps before it.
func TestDSS(t *testing.T) {
	ack, dsn := []byte{0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8}, []byte{0xd1, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8}
	for flags := range DSSFlag(32) {
		for _, checksum := range []bool{false, true} {
			if checksum && flags&DSSMap == 0 {
				continue
			}
			want := Packet{DSS: flags, Has: HasDSS}
			option := []byte{optionMPTCP, 0, 0x20, byte(flags)}
			switch {
			case flags&DSSAck == 0:
			case flags&DSSAck64 == 0:
				option, want.DataAck = append(option, ack[:4]...), 0xa1a2a3a4
			default:
				option, want.DataAck = append(option, ack...), 0xa1a2a3a4a5a6a7a8
			}
			if flags&DSSMap != 0 {
				if flags&DSSMap64 == 0 {
					option, want.DSN = append(option, dsn[:4]...), 0xd1d2d3d4
				} else {
					option, want.DSN = append(option, dsn...), 0xd1d2d3d4d5d6d7d8
				}
				option = append(option, 0, 0, 0, 17, 0x05, 0x90)
				want.SSN, want.DSSLen = 17, 1424
			}
			if checksum {
				option, want.DSS = append(option, 0xab, 0xcd), flags|DSSChecksum
			}
			option[1] = byte(len(option))

			if got := dssOf(decodeOptions(t, slices.Clone(option))); got != dssOf(&want) {
				t.Errorf("% x:\n got %+v\nwant %+v", option, got, dssOf(&want))
			}
			timestamps := []byte{1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2}
			want.Has, want.TSVal, want.TSEcr = HasDSS|HasTimestamps, 1, 2
			if got := dssOf(decodeOptions(t, append(timestamps, option...))); got != dssOf(&want) {
				t.Errorf("% x behind timestamps:\n got %+v\nwant %+v", option, got, dssOf(&want))
			}
			for _, wrong := range []int{-1, 1} {
				bad := append(slices.Clone(option), 0)[:len(option)+wrong]
				bad[1] = byte(len(bad))
				if p := decodeOptions(t, bad); p.Has != HasBad {
					t.Errorf("% x is taken as well-formed", bad)
				}
			}
		}
	}
}

type dss struct {
	has          Has
	flags        DSSFlag
	ack, dsn     uint64
	ssn          uint32
	length       uint16
	tsVal, tsEcr uint32
}

func dssOf(p *Packet) dss {
	return dss{p.Has, p.DSS, p.DataAck, p.DSN, p.SSN, p.DSSLen, p.TSVal, p.TSEcr}
}

func TestAddAddr(t *testing.T) {
	v4, v6 := addr("10.64.2.2"), addr("fd21::2")
	const six = " fd 21 00 00 00 00 00 00 00 00 00 00 00 00 00 02"
	for _, c := range []struct {
		name, text string
		want       AddAddr
	}{
		{"v0 IPv4", "1e 08 34 02 0a 40 02 02", AddAddr{AddressID: 2, Addr: v4}},
		{"v0 IPv4 and port", "1e 0a 34 02 0a 40 02 02 1f 90", AddAddr{AddressID: 2, Addr: v4, Port: 8080}},
		{"v0 IPv6", "1e 14 36 02" + six, AddAddr{AddressID: 2, Addr: v6}},
		{"v0 IPv6 and port", "1e 16 36 02" + six + "1f 90", AddAddr{AddressID: 2, Addr: v6, Port: 8080}},
		{"v1 IPv4", "1e 10 30 02 0a 40 02 02 01 02 03 04 05 06 07 08", AddAddr{AddressID: 2, Addr: v4, HasHMAC: true, HMAC: key2}},
		{
			"v1 IPv4 and port", "1e 12 30 02 0a 40 02 02 1f 90 01 02 03 04 05 06 07 08",
			AddAddr{AddressID: 2, Addr: v4, Port: 8080, HasHMAC: true, HMAC: key2},
		},
		{"v1 IPv6", "1e 1c 30 02" + six + "01 02 03 04 05 06 07 08", AddAddr{AddressID: 2, Addr: v6, HasHMAC: true, HMAC: key2}},
		{
			"v1 IPv6 and port", "1e 1e 30 02" + six + "1f 90 01 02 03 04 05 06 07 08",
			AddAddr{AddressID: 2, Addr: v6, Port: 8080, HasHMAC: true, HMAC: key2},
		},
		{"v1 echo of IPv4", "1e 08 31 02 0a 40 02 02", AddAddr{Echo: true, AddressID: 2, Addr: v4}},
		{"v1 echo of IPv4 and port", "1e 0a 31 02 0a 40 02 02 1f 90", AddAddr{Echo: true, AddressID: 2, Addr: v4, Port: 8080}},
		{"v1 echo of IPv6", "1e 14 31 02" + six, AddAddr{Echo: true, AddressID: 2, Addr: v6}},
		{"v1 echo of IPv6 and port", "1e 16 31 02" + six + "1f 90", AddAddr{Echo: true, AddressID: 2, Addr: v6, Port: 8080}},
	} {
		if p := decodeOptions(t, bytesOf(t, c.text)); p.Has != HasAddAddr || p.AddAddr() != c.want {
			t.Errorf("%s: %b\n got %+v\nwant %+v", c.name, p.Has, p.AddAddr(), c.want)
		}
	}
}

func TestOtherOptions(t *testing.T) {
	for _, c := range []struct {
		name, text string
		has        Has
		got        func(*Packet) any
		want       any
	}{
		{"REMOVE_ADDR", "1e 04 40 02", HasRemoveAddr, func(p *Packet) any { return p.RemoveAddr() }, []byte{2}},
		{"REMOVE_ADDR of three", "1e 06 40 02 05 09", HasRemoveAddr, func(p *Packet) any { return p.RemoveAddr() }, []byte{2, 5, 9}},
		{"MP_PRIO", "1e 03 51", HasPrio, func(p *Packet) any { return p.Prio() }, Prio{Backup: true}},
		{"MP_PRIO, no backup", "1e 03 50", HasPrio, func(p *Packet) any { return p.Prio() }, Prio{}},
		{"MP_PRIO of an address", "1e 04 51 03", HasPrio, func(p *Packet) any { return p.Prio() }, Prio{Backup: true, AddressID: 3, HasAddressID: true}},
		{"MP_FAIL", "1e 0c 60 00 11 22 33 44 55 66 77 88", HasFail, func(p *Packet) any { return p.FailDSN() }, uint64(key1)},
		{"MP_FASTCLOSE", "1e 0c 70 00 11 22 33 44 55 66 77 88", HasFastclose, func(*Packet) any { return nil }, nil},
		{"MP_TCPRST", "1e 04 80 05", HasReset, func(p *Packet) any { return p.Reset() }, Reset{Reason: 5}},
		{"MP_TCPRST, transient", "1e 04 81 02", HasReset, func(p *Packet) any { return p.Reset() }, Reset{Transient: true, Reason: 2}},
		{"MSS", "02 04 05 b4", HasMSS, func(p *Packet) any { return p.MSS() }, uint16(1460)},
		{"window scale", "03 03 07", HasWindowScale, func(p *Packet) any { return p.WindowScale() }, uint8(7)},
		{"window scale out of range", "03 03 0f", HasWindowScale, func(p *Packet) any { return p.WindowScale() }, uint8(14)},
		{"SACK permitted", "04 02", HasSACKPermitted, func(*Packet) any { return nil }, nil},
		{
			"SACK", "01 01 05 12 00 00 00 01 00 00 00 02 00 00 00 03 00 00 00 04", HasSACK,
			func(p *Packet) any { return p.SACK(nil) }, []SACKBlock{{1, 2}, {3, 4}},
		},
		{
			"timestamps", "08 0a 00 00 00 05 00 00 00 06", HasTimestamps,
			func(p *Packet) any { return [2]uint32{p.TSVal, p.TSEcr} }, [2]uint32{5, 6},
		},
	} {
		if p := decodeOptions(t, bytesOf(t, c.text)); p.Has != c.has || !reflect.DeepEqual(c.got(p), c.want) {
			t.Errorf("%s: %b %v", c.name, p.Has, c.got(p))
		}
	}
}

func TestSeveralOptions(t *testing.T) {
	p := decodeOptions(t, bytesOf(t, "02 04 05 b4 04 02 08 0a 00 00 00 05 00 00 00 06 01 03 03 07 1e 04 01 01"))
	if p.Has != HasMSS|HasSACKPermitted|HasTimestamps|HasWindowScale|HasCapable || p.MSS() != 1460 || p.TSEcr != 6 || p.WindowScale() != 7 ||
		p.Capable().Version != 1 {
		t.Errorf("SYN: %b", p.Has)
	}
	p = decodeOptions(t, bytesOf(t, "01 01 08 0a 00 00 00 05 00 00 00 06 1e 0c 20 03 00 00 00 00 00 00 10 00 1e 08 31 02 0a 40 02 02"))
	if p.Has != HasTimestamps|HasDSS|HasAddAddr || p.DataAck != 4096 || !p.AddAddr().Echo {
		t.Errorf("DSS and ADD_ADDR: %b", p.Has)
	}
	p = decodeOptions(t, bytesOf(t, "1e 0c 70 00 11 22 33 44 55 66 77 88 1e 04 80 01"))
	if p.Has != HasFastclose|HasReset || p.Reset().Reason != 1 {
		t.Errorf("MP_FASTCLOSE and MP_TCPRST: %b", p.Has)
	}
	p = decodeOptions(t, bytesOf(t, "1e 08 20 01 00 00 00 01 1e 08 20 01 00 00 00 02"))
	if p.Has != HasDSS || p.DataAck != 1 {
		t.Errorf("of two DSS the first holds: %b, %d", p.Has, p.DataAck)
	}
	p = decodeOptions(t, bytesOf(t, "1e 05 50 00 00 1e 03 51"))
	if p.Has != HasPrio|HasBad || !p.Prio().Backup {
		t.Errorf("a malformed MP_PRIO before a good one: %b", p.Has)
	}
}

func TestMalformedOptions(t *testing.T) {
	for _, c := range []struct {
		name, text string
		has        Has
	}{
		{"MP_CAPABLE of 5 bytes", "1e 05 01 81 00", HasBad},
		{"MP_JOIN of 13 bytes", "1e 0d 11 02 aa bb cc dd 00 00 00 07 00", HasBad},
		{"DSS without flags", "1e 03 20", HasBad},
		{"ADD_ADDR of 9 bytes", "1e 09 30 02 0a 40 02 02 00", HasBad},
		{"ADD_ADDR v1 without HMAC", "1e 08 30 02 0a 40 02 02", HasBad},
		{"REMOVE_ADDR of nothing", "1e 03 40", HasBad},
		{"MP_PRIO of 5 bytes", "1e 05 50 00 00", HasBad},
		{"MP_FAIL of 8 bytes", "1e 08 60 00 11 22 33 44", HasBad},
		{"MP_TCPRST of 3 bytes", "1e 03 80", HasBad},
		{"MPTCP without a subtype", "1e 02", HasBad},
		{"unknown subtype", "1e 04 90 00", 0},
		{"experimental subtype", "1e 04 f0 00", 0},
		{"longer than the header", "1e 0c 01 81", 0},
		{"behind the end of options", "00 1e 03 51", 0},
		{"no length", "01 01 01 1e", 0},
		{"length 1", "1e 01 00", 0},
		{"MSS of 3 bytes, then MSS", "02 03 05 02 04 05 b4", HasMSS},
		{"SACK of half a block", "05 06 00 00 00 01", 0},
		{"timestamps of 6 bytes", "08 06 00 00 00 01", 0},
		{"window scale of 4 bytes", "03 04 07 00", 0},
		{"SACK permitted of 3 bytes", "04 03 00", 0},
	} {
		if p := decodeOptions(t, bytesOf(t, c.text)); p.Has != c.has {
			t.Errorf("%s: %b, want %b", c.name, p.Has, c.has)
		}
	}
}

// TestCutOptions: only completely captured options count.
func TestCutOptions(t *testing.T) {
	options := bytesOf(t, "01 01 08 0a 00 00 00 05 00 00 00 06 1e 1a 20 0f 00 00 00 00 00 00 10 00 11 22 33 44 55 66 77 88 00 00 00 11 05 90 01 01")
	frame := segmentWith(options)
	for n := range len(options) + 1 {
		want, quirks := Has(0), OptionsCut
		if n >= 12 {
			want = HasTimestamps
		}
		if n >= 38 {
			want |= HasDSS
		}
		if n == len(options) {
			quirks = 0
		}
		var p Packet
		if v := Decode(LinkRaw, frame[:40+n], len(frame), &p); v != TCP || p.Has != want || p.Quirks != quirks || p.Payload != 0 || len(p.Options) != n {
			t.Errorf("%d bytes: %v %+v", n, v, p)
		}
	}
}

// TestNoTimestamps: a packet without timestamps does not keep those of the one
// decoded before it.
func TestNoTimestamps(t *testing.T) {
	var p Packet
	for _, c := range []struct {
		options string
		want    uint32
	}{{"01 01 08 0a 00 00 00 05 00 00 00 06", 5}, {"", 0}, {"08 0a 00 00 00 07 00 00 00 06 01 01", 7}, {"02 04 05 b4", 0}} {
		b := segmentWith(bytesOf(t, c.options))
		if v := Decode(LinkRaw, b, len(b), &p); v != TCP || p.TSVal != c.want || (p.TSEcr != 0) != (c.want != 0) || (p.Has&HasTimestamps != 0) != (c.want != 0) {
			t.Errorf("%q: %v, TSval %d, TSecr %d", c.options, v, p.TSVal, p.TSEcr)
		}
	}
}
