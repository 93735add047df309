package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"testing"
)

// TestIdentityIsThatOfTheKernel uses the numbers that tshark prints for one connection
// of testdata/phone-v0 and phone-v1.
func TestIdentityIsThatOfTheKernel(t *testing.T) {
	for _, want := range []struct {
		version uint8
		tokens  [2]uint32
		idsn    uint64 // of the client
		synACK  uint64 // HMAC in the SYN/ACK of MP_JOIN
		ack     string
	}{
		{0, [2]uint32{247021280, 782077023}, 16035189762501819098, 15122231295872324806, "9262f4338076a45984a6d15df714f84161e1477a"},
		{1, [2]uint32{951747795, 1812561980}, 17674981920019127570, 18101732340720790166, "a4fcab93d87f0bfc816d80db966930b8fb1e1eed"},
	} {
		got := newIdentity(want.version, 14822030342376447671, 2211382747223728403)
		if got.tokens != want.tokens || got.idsn[0] != want.idsn {
			t.Errorf("version %d: %+v", want.version, got)
		}
		nonces := [2]uint32{2910713112, 1338812229}
		if mac := binary.BigEndian.Uint64(got.hmac(1, nonces)); mac != want.synACK {
			t.Errorf("version %d: HMAC of the SYN/ACK %d", want.version, mac)
		}
		if mac := hex.EncodeToString(got.hmac(0, nonces)[:20]); mac != want.ack {
			t.Errorf("version %d: HMAC of the ACK %s", want.version, mac)
		}
	}
}

// whole returns an Ethernet frame with a TCP segment and correct checksums.
func whole(options, payload []byte) []byte {
	b := make([]byte, etherSize+20+20, 100)
	b[12], b[ipAt], b[ipAt+9] = 8, 0x45, 6
	copy(b[ipAt+12:], []byte{10, 1, 0, 1, 10, 1, 0, 2})
	b[etherSize+20+12] = byte(20+len(options)) / 4 << 4
	b = append(append(b, options...), payload...)
	binary.BigEndian.PutUint16(b[ipAt+2:], uint16(len(b)-ipAt))
	h, _ := headers(b)
	reseal(b, h)
	binary.BigEndian.PutUint16(b[h.tcp+16:], ^uint16(fold(segmentSum(b, h))))
	return b
}

// segmentSum adds up pseudo header, header and payload without the checksum.
func segmentSum(b []byte, h header) uint32 {
	sum := headerSum(b, h)
	for rest := b[h.end:]; len(rest) > 1; rest = rest[2:] {
		sum += uint32(binary.BigEndian.Uint16(rest))
	}
	return sum
}

func TestChecksumsFitAfterRewriting(t *testing.T) {
	stamps := []byte{1, 1, optionStamp, 10, 0, 0, 0, 1, 0, 0, 0, 2}
	payload := []byte("what nobody sees in the capture!")
	b := whole(stamps, payload)
	cut := frame{origin: len(b), data: b[:len(b)-len(payload)]}
	h, _ := headers(cut.data)
	wide := append(bytes.Clone(stamps[2:]), optionMPTCP, 8, subDSS<<4, dssAck, 1, 2, 3, 4)
	got := cut.withOptions(h, wide)
	if got.origin != len(b)+8 {
		t.Errorf("%d bytes on the wire, were %d", got.origin, len(b))
	}
	h, ok := headers(got.data)
	if !ok || h.end != len(got.data) {
		t.Fatalf("header %+v of %d bytes", h, len(got.data))
	}
	complete := append(bytes.Clone(got.data), payload...)
	if want := ^uint16(fold(segmentSum(complete, h))); binary.BigEndian.Uint16(complete[h.tcp+16:]) != want {
		t.Errorf("checksum %#x, want %#x", binary.BigEndian.Uint16(complete[h.tcp+16:]), want)
	}
}

func TestVersion0HasNarrowNumbersAndKeysInTheSYN(t *testing.T) {
	from := newIdentity(1, 1, 2)
	flow := flowKey{10, 1, 0, 1, 10, 1, 0, 2, 0, 1, 0, 2}
	r := rewriter{place{&learned{from, nil}, 0, flow}, from.another(0, 0)}
	be := binary.BigEndian
	if got := r.option(nil, []byte{optionMPTCP, 4, subCapable<<4 | 1, 1}); len(got) != 12 || be.Uint64(got[4:]) != 1 || got[2] != 0 {
		t.Errorf("MP_CAPABLE of the SYN % x", got)
	}
	dss := []byte{optionMPTCP, 26, subDSS << 4, dssAck | dssAck64 | dssMap | dssMap64}
	dss = be.AppendUint64(dss, from.idsn[1]+7)
	dss = be.AppendUint64(dss, from.idsn[0]+5)
	dss = append(dss, 0, 0, 0, 9, 0, 100)
	got := r.option(nil, dss)
	if len(got) != 18 || be.Uint32(got[4:]) != uint32(r.to.idsn[1])+7 || be.Uint32(got[8:]) != uint32(r.to.idsn[0])+5 || !bytes.Equal(got[12:], dss[20:]) {
		t.Errorf("DSS % x", got)
	}
	if got := r.option(nil, []byte{optionMPTCP, 4, subReset << 4, 0}); len(got) != 0 {
		t.Errorf("version 0 has no MP_TCPRST: % x", got)
	}
}
