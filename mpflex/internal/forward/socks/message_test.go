package socks

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
)

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestMessages has requests in the format of RFC 1928 §4, and their contents.
func TestMessages(t *testing.T) {
	cases := []struct {
		name, bytes string
		what        byte
		want        Address
		err         error
	}{
		{"IPv4", "05 01 00 01 0a410002 0050", 1, Address{IP: netip.MustParseAddr("10.65.0.2"), Port: 80}, nil},
		{"IPv6", "05 03 00 04 fd000000000000000000000000000001 01bb", 3, Address{IP: netip.MustParseAddr("fd00::1"), Port: 443}, nil},
		{"IPv4 in IPv6", "05 01 00 04 00000000000000000000ffff0a410002 0050", 1, Address{IP: netip.MustParseAddr("10.65.0.2"), Port: 80}, nil},
		{"domain", "05 01 00 03 06 646c2e6c6162 0050", 1, Address{Domain: "dl.lab", Port: 80}, nil},
		{"address as a domain", "05 01 00 03 09 3132372e302e302e31 0050", 1, Address{IP: netip.MustParseAddr("127.0.0.1"), Port: 80}, nil},
		{"bind", "05 02 00 01 00000000 0000", 2, Address{IP: netip.IPv4Unspecified()}, nil},
		{"version 4", "04 01 00 50 0a410002", 0, Address{}, ErrVersion},
		{"no such type", "05 01 00 02 0a410002 0050", 0, Address{}, ErrAddressType},
		{"empty domain", "05 01 00 03 00 0050", 1, Address{}, ErrFormat},
		{"line end in a domain", "05 01 00 03 02 610a 0050", 1, Address{}, ErrFormat},
		{"cut short", "05 01 00 01 0a4100", 0, Address{}, io.ErrUnexpectedEOF},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			reader := bytes.NewReader(append(unhex(t, c.bytes), "application"...))
			if errors.Is(c.err, io.ErrUnexpectedEOF) {
				reader = bytes.NewReader(unhex(t, c.bytes))
			}
			what, got, err := readMessage(reader)
			if what != c.what || got != c.want || !errors.Is(err, c.err) {
				t.Errorf("%d, %+v, %v", what, got, err)
			}
			if rest, _ := io.ReadAll(reader); err == nil && string(rest) != "application" {
				t.Errorf("the application's bytes were read: %q is left", rest)
			}
		})
	}
}

func TestEncodedMessages(t *testing.T) {
	long := strings.Repeat("a", maxDomain)
	for _, c := range []struct {
		got  []byte
		want string
	}{
		{appendGreeting(nil, methodNone, methodPassword), "05 02 00 02"},
		{appendCredentials(nil, "me", "secret"), "01 02 6d65 06 736563726574"},
		{appendMessage(nil, byte(CommandNotSupported), Address{}), "05 07 00 01 00000000 0000"},
		{appendMessage(nil, 0, FromAddrPort(netip.MustParseAddrPort("[fe80::1%eth0]:9"))), "05 00 00 04 fe800000000000000000000000000001 0009"},
		{appendDatagram(nil, FromAddrPort(netip.MustParseAddrPort("[::ffff:10.65.0.2]:53")), []byte("hi")), "0000 00 01 0a410002 0035 6869"},
		{appendMessage(nil, 1, Address{Domain: long, Port: 80}), "05 01 00 03 ff " + hex.EncodeToString([]byte(long)) + " 0050"},
	} {
		if want := unhex(t, c.want); !bytes.Equal(c.got, want) {
			t.Errorf("got  %x\nwant %x", c.got, want)
		}
	}
}

// Any input is read without a crash and not beyond its end. An accepted message is the
// same after decoding and encoding.

func FuzzMessage(f *testing.F) {
	f.Add([]byte("\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50GET"))
	f.Add([]byte("\x05\x03\x00\x03\x06dl.lab\x00\x35"))
	f.Fuzz(func(t *testing.T, data []byte) {
		reader := bytes.NewReader(data)
		what, address, err := readMessage(reader)
		if err != nil {
			return
		}
		again := bytes.NewReader(append(appendMessage(nil, what, address), data[len(data)-reader.Len():]...))
		what2, address2, err := readMessage(again)
		if err != nil || what2 != what || address2 != address || again.Len() != reader.Len() {
			t.Errorf("%d %+v, again %d %+v, %v", what, address, what2, address2, err)
		}
	})
}

func FuzzGreeting(f *testing.F) {
	f.Add([]byte("\x05\x02\x00\x02"))
	f.Fuzz(func(t *testing.T, data []byte) {
		reader := bytes.NewReader(data)
		methods, err := readGreeting(reader)
		if err != nil {
			return
		}
		if read := data[:len(data)-reader.Len()]; !bytes.Equal(appendGreeting(nil, methods...), read) {
			t.Errorf("%x was read as %x", read, methods)
		}
	})
}

func FuzzCredentials(f *testing.F) {
	f.Add([]byte("\x01\x02me\x06secret"))
	f.Fuzz(func(t *testing.T, data []byte) {
		reader := bytes.NewReader(data)
		user, password, err := readCredentials(reader)
		if err != nil {
			return
		}
		if read := data[:len(data)-reader.Len()]; !bytes.Equal(appendCredentials(nil, user, password), read) {
			t.Errorf("%x was read as %q, %q", read, user, password)
		}
	})
}

func FuzzDatagram(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x01\x7f\x00\x00\x01\x00\x35query"))
	f.Add([]byte("\x00\x00\x01\x03\x06dl.lab\x00\x35query"))
	f.Fuzz(func(t *testing.T, data []byte) {
		address, payload, err := parseDatagram(data)
		if err != nil {
			return
		}
		if !bytes.HasSuffix(data, payload) {
			t.Errorf("%x does not end with %x", data, payload)
		}
		address2, payload2, err := parseDatagram(appendDatagram(nil, address, payload))
		if err != nil || address2 != address || !bytes.Equal(payload2, payload) {
			t.Errorf("%+v %x, again %+v %x, %v", address, payload, address2, payload2, err)
		}
	})
}
