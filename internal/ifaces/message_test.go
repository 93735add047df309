package ifaces

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// fromHex decodes a message in hexadecimal. Messages are in little-endian byte order.
func fromHex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestParseAddress parses bodies of RTM_NEWADDR: family, prefix, flags, scope, index;
// then attributes: size, kind, value.
func TestParseAddress(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want string // "": unusable
		host bool
	}{
		"IPv4":                    {"02188000" + "02000000" + "08000100" + "0a400102" + "08000200" + "0a400102", "10.64.1.2", false},
		"IPv4 with a peer":        {"02208000" + "02000000" + "08000100" + "0a400109" + "08000200" + "0a400102", "10.64.1.2", false},
		"IPv4 link scope":         {"021880fd" + "02000000" + "08000100" + "a9fe0102" + "08000200" + "a9fe0102", "", false},
		"IPv4 link-local address": {"02108000" + "02000000" + "08000200" + "a9fe0102", "", false},
		"loopback":                {"020880fe" + "02000000" + "08000100" + "7f000001" + "08000200" + "7f000001", "127.0.0.1", true},
		"IPv6":                    {"0a408000" + "02000000" + "14000100" + "fd000000000000000000000000000001" + "08000800" + "80000000", "fd00::1", false},
		"IPv6 link-local":         {"0a4080fd" + "02000000" + "14000100" + "fe800000000000000000000000000001", "", false},
		"IPv6 tentative":          {"0a40c000" + "02000000" + "14000100" + "fd000000000000000000000000000001", "", false},
		"IPv6 tentative, in long": {"0a400000" + "02000000" + "14000100" + "fd000000000000000000000000000001" + "08000800" + "40000000", "", false},
		"IPv6 duplicate":          {"0a408800" + "02000000" + "14000100" + "fd000000000000000000000000000001" + "08000800" + "c8000000", "", false},
		"IPv6 deprecated":         {"0a40a000" + "02000000" + "14000100" + "fd000000000000000000000000000001" + "08000800" + "a0000000", "fd00::1", false},
		"no address":              {"02188000" + "02000000" + "08000800" + "80000000", "", false},
		"address of a wrong size": {"02188000" + "02000000" + "07000200" + "0a4001" + "00", "", false},
		"attribute cut short":     {"02188000" + "02000000" + "08000200" + "0a40", "", false},
		"attribute of no size":    {"02188000" + "02000000" + "00000200" + "0a400102", "", false},
		"cut in the beginning":    {"021880", "", false},
	} {
		got, ok := parseAddress(fromHex(t, c.body))
		if ok != (c.want != "") {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
		if ok && (got != address{2, netip.MustParseAddr(c.want), c.host}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestParseDefault parses bodies of RTM_NEWROUTE: family, bits of destination and
// source, TOS, table, protocol, scope, kind, flags; then attributes.
func TestParseDefault(t *testing.T) {
	const table, gateway = "08000f00" + "fe000000", "08000500" + "0a400101"
	for name, c := range map[string]struct {
		body string
		want []int
	}{
		"default":                  {"02000000" + "fe030001" + "00000000" + table + gateway + "08000400" + "02000000", []int{2}},
		"in a table of its own":    {"02000000" + "01030001" + "00000000" + "08000f00" + "ea030000" + "08000400" + "02000000", []int{2}},
		"point to point":           {"02000000" + "fe0300fd" + "00000000", nil},
		"to a network":             {"02180000" + "fe03fd01" + "00000000" + "08000400" + "02000000", nil},
		"another family":           {"0a000000" + "fe030001" + "00000000" + "08000400" + "02000000", nil},
		"unreachable":              {"02000000" + "fe030007" + "00000000" + "08000400" + "02000000", nil},
		"of the local table":       {"02000000" + "ff030001" + "00000000" + "08000400" + "02000000", nil},
		"its link has no carrier":  {"02000000" + "fe030001" + "10000000" + "08000400" + "02000000", nil},
		"dead":                     {"02000000" + "fe030001" + "01000000" + "08000400" + "02000000", nil},
		"a copy for a destination": {"02000000" + "fe030001" + "00020000" + "08000400" + "02000000", nil},
		"over two": {"02000000" + "fe030001" + "00000000" + "24000900" +
			"10000000" + "02000000" + gateway + "10000000" + "03000000" + gateway, []int{2, 3}},
		"over two, one dead": {"02000000" + "fe030001" + "00000000" + "14000900" +
			"08000100" + "02000000" + "08000000" + "03000000", []int{3}},
		"a hop cut short":      {"02000000" + "fe030001" + "00000000" + "0c000900" + "10000000" + "02000000", nil},
		"a hop of no size":     {"02000000" + "fe030001" + "00000000" + "0c000900" + "00000000" + "02000000", nil},
		"cut in the beginning": {"02000000" + "fe0300", nil},
	} {
		if got := parseDefault(fromHex(t, c.body), unix.AF_INET); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestNextMessage(t *testing.T) {
	two := fromHex(t, "12000000"+"1800"+"0200"+"07000000"+"00000000"+"abcd"+"0000"+"10000000"+"0300"+"0000"+"07000000"+"00000000")
	first, rest, err := nextMessage(two)
	if err != nil || first.kind != 24 || first.flags != 2 || first.seq != 7 || !bytes.Equal(first.body, []byte{0xab, 0xcd}) {
		t.Errorf("%+v, %v", first, err)
	}
	second, rest, err := nextMessage(rest)
	if err != nil || second.kind != unix.NLMSG_DONE || len(second.body) != 0 || len(rest) != 0 {
		t.Errorf("%+v, %x, %v", second, rest, err)
	}
	for _, bad := range []string{"", "1200", "12000000" + "1800" + "0200" + "07000000" + "00000000" + "ab", "0f000000" + "1800" + "0200" + "07000000" + "00000000"} {
		if _, _, err := nextMessage(fromHex(t, bad)); err == nil {
			t.Errorf("%q is a message", bad)
		}
	}
}

// FuzzMessages checks that any message of the kernel is parsed to its end without a
// panic.
func FuzzMessages(f *testing.F) {
	f.Add(fromHex(f, "28000000"+"1400"+"0200"+"01000000"+"00000000"+"02188000"+"02000000"+"08000100"+"0a400102"+"08000200"+"0a400102"))
	f.Add(fromHex(f, "34000000"+"1800"+"0200"+"01000000"+"00000000"+"02000000"+"fe030001"+"00000000"+"14000900"+"08000100"+"02000000"+"08000000"+"03000000"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			m, rest, err := nextMessage(b)
			if err != nil {
				return
			}
			if len(rest) >= len(b) {
				t.Fatalf("%d bytes are left of %d", len(rest), len(b))
			}
			if a, ok := parseAddress(m.body); ok && (!a.addr.IsValid() || a.addr.IsLinkLocalUnicast()) {
				t.Errorf("%+v", a)
			}
			if hops := parseDefault(m.body, unix.AF_INET); len(hops) > len(m.body)/attrSize {
				t.Errorf("%d hops in %d bytes", len(hops), len(m.body))
			}
			_ = dumpError(m.body)
			b = rest
		}
	})
}
