package proxied

import (
	"encoding/hex"
	"net/netip"
	"os"
	"strings"
	"testing"
)

// vectors returns the output of testdata/table.py. The first one starts like
// the output of ShadowSocks for this password.
func vectors(t *testing.T) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile("testdata/table.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		password, table, _ := strings.Cut(line, "\t")
		if out[password], err = hex.DecodeString(table); err != nil || len(out[password]) != 256 {
			t.Fatal(line)
		}
	}
	return out
}

func TestTheTableIsThatOfShadowSocks(t *testing.T) {
	all := vectors(t)
	if len(all) < 5 {
		t.Fatalf("%d vectors", len(all))
	}
	for password, sealed := range all {
		plain := NewTable(password).Decode(sealed)
		for i, c := range plain {
			if int(c) != i {
				t.Errorf("%q: %#x is decoded as %#x", password, sealed[i], c)
			}
		}
	}
}

func TestShadowSocksRequests(t *testing.T) {
	v4 := netip.MustParseAddr("1.2.3.4")
	for name, c := range map[string]struct {
		plain string
		want  Target
		size  int
		ok    bool
	}{
		"IPv4, 7 bytes":             {"\x01\x01\x02\x03\x04\x00\x50", Target{Addr: v4, Port: 80}, 7, true},
		"IPv4 and data":             {"\x01\x01\x02\x03\x04\x00\x50GET", Target{Addr: v4, Port: 80}, 7, true},
		"host, 11 bytes":            {"\x03\x078.8.8.8\x00\x35", Target{Addr: netip.MustParseAddr("8.8.8.8"), Port: 53}, 11, true},
		"host of 12":                {"\x03\x0cexample.test\x01\xbb rest", Target{Host: "example.test", Port: 443}, 16, true},
		"host as in baerts2015":     {"\x04\x078.8.8.8\x00\x35", Target{Addr: netip.MustParseAddr("8.8.8.8"), Port: 53}, 11, true},
		"IPv6":                      {"\x04\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x01\xbb", Target{Addr: netip.MustParseAddr("2001:db8::1"), Port: 443}, 19, true},
		"cut in the address":        {"\x01\x01\x02\x03\x04\x00", Target{}, 0, true},
		"cut in the host":           {"\x03\x0cexample", Target{}, 0, true},
		"nothing":                   {"", Target{}, 0, true},
		"another type":              {"\x02\x01\x02\x03\x04\x00\x50", Target{}, 0, false},
		"port 0":                    {"\x01\x01\x02\x03\x04\x00\x00", Target{Addr: v4}, 7, false},
		"a host that cannot be one": {"\x03\x03a b\x00\x50", Target{Host: "a b", Port: 80}, 7, false},
		"an empty host":             {"\x03\x00\x00\x50", Target{Port: 80}, 4, false},
	} {
		if got, size, ok := ShadowSocks([]byte(c.plain)); got != c.want || size != c.size || ok != c.ok {
			t.Errorf("%s: %+v, %d, %v", name, got, size, ok)
		}
	}
}
