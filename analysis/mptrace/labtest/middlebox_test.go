package labtest_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"mplab/analysis/mptrace/labtest"
)

// segment has ten bytes of payload and an MP_CAPABLE of version 1, over IPv4.
const segment = `
02 00 00 00 00 02 02 00 00 00 00 01 08 00
45 00 00 42 00 01 40 00 40 06 00 00 0a 01 00 01 0a 01 00 02
9c 40 0f a0 00 00 00 01 00 00 00 02 b0 18 01 00 00 00 00 00
1e 14 01 81 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f 01 01 01 00
68 65 6c 6c 6f 20 79 6f 75 21`

func frame(t *testing.T) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(segment), ""))
	if err != nil {
		t.Fatal(err)
	}
	binary.BigEndian.PutUint16(b[16:], uint16(len(b)-14))
	return b
}

func TestStripLeavesPayloadAndAGoodChecksum(t *testing.T) {
	b := frame(t)
	s, ok := labtest.View(b)
	if !ok || string(s.Payload()) != "hello you!" {
		t.Fatalf("%v: payload %q", ok, s.Payload())
	}
	s.Strip(labtest.DSS)
	if b[54] != 30 {
		t.Error("an option of another subtype was stripped")
	}
	s.Strip(labtest.Capable)
	if !bytes.Equal(b[54:74], bytes.Repeat([]byte{1}, 20)) || string(s.Payload()) != "hello you!" {
		t.Errorf("options % x, payload %q", b[54:78], s.Payload())
	}
	sum := uint32(6 + len(b) - 34) // of the pseudo header
	for i := 26; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	if sum = sum&0xffff + sum>>16; sum&0xffff+sum>>16 != 0xffff {
		t.Errorf("the checksum adds up to %#x", sum)
	}
}

func TestViewRefusesWhatIsNoWholeSegment(t *testing.T) {
	for cut := range len(frame(t)) {
		if _, ok := labtest.View(frame(t)[:cut]); ok {
			t.Errorf("%d bytes of a longer packet are a segment", cut)
		}
	}
	udp := frame(t)
	udp[23] = 17
	if _, ok := labtest.View(udp); ok {
		t.Error("UDP is a segment")
	}
}

func TestLossIsTheSameEachTime(t *testing.T) {
	lost := func() (pattern string) {
		m := labtest.Lossy(0.5, 7)
		for range 64 {
			pattern += map[bool]string{true: "x", false: "."}[m(labtest.Up, frame(t)) == nil]
		}
		return pattern
	}
	if a, b := lost(), lost(); a != b || !strings.Contains(a, "x") || !strings.Contains(a, ".") {
		t.Errorf("%s and %s", a, b)
	}
}
