package wire_test

import (
	"bytes"
	"net/netip"
	"testing"

	"mplab/mpflex/wire"
)

// datagrams has datagrams and their encodings.
var datagrams = []struct {
	addr    string
	payload string
	encoded string
}{
	{"192.0.2.1:53", "query", "\x04\x00\x35\xc0\x00\x02\x01query"},
	{"192.0.2.1:53", "", "\x04\x00\x35\xc0\x00\x02\x01"},
	{"[2001:db8::1]:443", "\x00", "\x06\x01\xbb\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00"},
	{"", "", "\x00"},
}

func TestDatagram(t *testing.T) {
	for _, c := range datagrams {
		var addr netip.AddrPort
		if c.addr != "" {
			addr = netip.MustParseAddrPort(c.addr)
		}
		if got := wire.AppendDatagram(nil, addr, []byte(c.payload)); string(got) != c.encoded {
			t.Errorf("%s %q: %q", c.addr, c.payload, got)
		}
		back, payload, err := wire.ParseDatagram([]byte(c.encoded))
		if err != nil || back != addr || string(payload) != c.payload {
			t.Errorf("%q: %v %q %v", c.encoded, back, payload, err)
		}
	}
	for _, bad := range []string{"", "\x04\x00\x35\xc0\x00\x02", "\x05\x00\x35\xc0\x00\x02\x01", "\x00x", "\x06\x00\x01" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x01\x02\x03\x04"} {
		if addr, payload, err := wire.ParseDatagram([]byte(bad)); err == nil {
			t.Errorf("%q was taken: %v %q", bad, addr, payload)
		}
	}
}

func FuzzDatagram(f *testing.F) {
	for _, c := range datagrams {
		f.Add([]byte(c.encoded))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		addr, payload, err := wire.ParseDatagram(b)
		if err != nil {
			return
		}
		if again := wire.AppendDatagram(nil, addr, payload); !bytes.Equal(again, b) {
			t.Errorf("%q became %q", b, again)
		}
	})
}
