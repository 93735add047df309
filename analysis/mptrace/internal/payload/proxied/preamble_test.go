package proxied

import (
	"net/netip"
	"testing"
	"time"

	"mplab/mpflex/wire"
)

func hello(t testing.TB, command wire.Command, source, destination string) string {
	t.Helper()
	h := wire.Hello{Command: command, Time: time.UnixMilli(1_700_000_000_000), Source: netip.MustParseAddrPort(source)}
	if destination != "" {
		h.Destination = netip.MustParseAddrPort(destination)
	}
	return string(h.Append(nil, []byte("a secret")))
}

var status = "MPFX\x01\x00\x00\x28" + string(make([]byte, 32))

type example struct {
	name     string
	up, down string // only the preamble
	kind     Kind
	want     Target
}

func examples(t testing.TB) []example {
	t.Helper()
	v4, v6 := netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("2001:db8::7")
	const ok5 = "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"
	return []example{
		{"mpflex, IPv4", hello(t, wire.Connect, "10.0.0.1:4000", "192.0.2.7:443"), status, MPFX, Target{Addr: v4, Port: 443}},
		{"mpflex, IPv6", hello(t, wire.Connect, "[2001:db8::1]:4000", "[2001:db8::7]:443"), status, MPFX, Target{Addr: v6, Port: 443}},
		{"mpflex, echo", hello(t, wire.Echo, "10.0.0.1:4000", ""), status, MPFX, Target{}},
		{"SOCKS 5, IPv4", "\x05\x01\x00\x05\x01\x00\x01\xc0\x00\x02\x07\x01\xbb", "\x05\x00" + ok5, SOCKS5, Target{Addr: v4, Port: 443}},
		{"SOCKS 5, two methods, host", "\x05\x02\x00\x02\x05\x01\x00\x03\x0bexample.org\x00\x50", "\x05\x00" + ok5, SOCKS5, Target{Host: "example.org", Port: 80}},
		{"SOCKS 5, name and password, IPv6", "\x05\x01\x02\x01\x03joe\x04pass\x05\x01\x00\x04" + string(v6.AsSlice()) + "\x01\xbb",
			"\x05\x02\x01\x00\x05\x00\x00\x04" + string(make([]byte, 18)), SOCKS5, Target{Addr: v6, Port: 443}},
		{"SOCKS 5, bound to an empty host", "\x05\x01\x00\x05\x01\x00\x01\xc0\x00\x02\x07\x01\xbb", "\x05\x00\x05\x00\x00\x03\x00\x00\x00", SOCKS5, Target{Addr: v4, Port: 443}},
		{"SOCKS 4", "\x04\x01\x01\xbb\xc0\x00\x02\x07user\x00", "\x00\x5a\x00\x00\x00\x00\x00\x00", SOCKS4, Target{Addr: v4, Port: 443}},
		{"SOCKS 4a", "\x04\x01\x00\x50\x00\x00\x00\x01\x00example.org\x00", "\x00\x5a\x00\x00\x00\x00\x00\x00", SOCKS4, Target{Host: "example.org", Port: 80}},
		{"CONNECT, host", "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n", "HTTP/1.1 200 Connection established\r\nX: y\r\n\r\n", Connect, Target{Host: "example.org", Port: 443}},
		{"CONNECT, IPv6", "CONNECT [2001:db8::7]:443 HTTP/1.1\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\n", Connect, Target{Addr: v6, Port: 443}},
	}
}

func TestPreamblesAreReadByteByByteOrAtOnce(t *testing.T) {
	for _, e := range examples(t) {
		const rest = "\x16\x03\x01 the application's bytes"
		for _, step := range []int{1, 7, 1000} {
			var p Preamble
			for dir, text := range [2]string{e.up, e.down} {
				stream := []byte(text + rest)
				read, shown := 0, 0
				progress := More
				for progress == More && shown < len(stream) {
					shown = min(shown+step, len(stream))
					var n int
					n, progress = p.Read(dir, stream[read:shown])
					read += n
				}
				if progress != Ready || string(stream[read:]) != rest {
					t.Errorf("%s, direction %d, %d at a time: %v, %d of %d bytes read", e.name, dir, step, progress, read, len(text))
				}
			}
			if p.Kind != e.kind || p.Target != e.want {
				t.Errorf("%s: kind %v, target %+v", e.name, p.Kind, p.Target)
			}
		}
	}
}

func TestWhatIsNoPreambleIsLeftToTheApplication(t *testing.T) {
	for _, text := range []string{"\x16\x03\x01\x02\x00", "GET / HTTP/1.1\r\n", "SSH-2.0-x", "\x00", "\x04\x07", "\x05\x00", "MPEG", "CONNECTED x"} {
		var p Preamble
		if n, progress := p.Read(up, []byte(text)); n != 0 || progress != Ready || p.Kind != None {
			t.Errorf("%q: %d bytes, %v, kind %v", text, n, progress, p.Kind)
		}
		if n, progress := p.Read(down, []byte("answer")); n != 0 || progress != Ready {
			t.Errorf("%q: %d bytes of the answer, %v", text, n, progress)
		}
	}
}

func TestTheAnswerWaitsForTheClient(t *testing.T) {
	var p Preamble
	if n, progress := p.Read(down, []byte(status)); n != 0 || progress != More {
		t.Errorf("%d, %v", n, progress)
	}
}

func TestPreamblesThatContradictThemselves(t *testing.T) {
	good := hello(t, wire.Connect, "10.0.0.1:4000", "192.0.2.7:443")
	for name, c := range map[string]struct {
		dir      int
		up, down string
	}{
		"mpflex of version 2":          {up, "MPFX\x02" + good[5:], ""},
		"mpflex, size":                 {up, good[:6] + "\x00\x67" + good[8:] + "more", ""},
		"mpflex, family":               {up, good[:32] + "\x05" + good[33:], ""},
		"mpflex, status":               {down, good, "HTTP/1.1 200 OK\r\n\r\nxxxxxxxxxxxxxxxxxxxxxxxxx"},
		"SOCKS 5, address type":        {up, "\x05\x01\x00\x05\x01\x00\x02\xc0\x00\x02\x07\x01\xbb", ""},
		"SOCKS 5, refused":             {down, "\x05\x01\x00", "\x05\x00\x05\x05\x00\x01\x00\x00\x00\x00\x00\x00"},
		"SOCKS 5, no method":           {down, "\x05\x01\x00", "\x05\xff"},
		"SOCKS 5, wrong password":      {down, "\x05\x01\x02", "\x05\x02\x01\x01"},
		"SOCKS 4, refused":             {down, "\x04\x01\x01\xbb\xc0\x00\x02\x07\x00", "\x00\x5b\x00\x00\x00\x00\x00\x00"},
		"SOCKS 4, name without an end": {up, "\x04\x01\x01\xbb\xc0\x00\x02\x07" + string(make([]byte, 0)) + long(300), ""},
		"CONNECT without a port":       {up, "CONNECT example.org HTTP/1.1\r\n\r\n", ""},
		"CONNECT, refused":             {down, "CONNECT example.org:1 HTTP/1.1\r\n\r\n", "HTTP/1.1 407 No\r\n\r\n"},
	} {
		var p Preamble
		_, progress := p.Read(up, []byte(c.up))
		if c.dir == down {
			_, progress = p.Read(down, []byte(c.down))
		}
		if progress != Wrong {
			t.Errorf("%s: %v", name, progress)
		}
	}
}

func long(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'x'
	}
	return string(b)
}

func FuzzPreamble(f *testing.F) {
	for _, e := range examples(f) {
		f.Add([]byte(e.up), []byte(e.down))
	}
	f.Fuzz(func(t *testing.T, upward, downward []byte) {
		var p Preamble
		for dir, b := range [2][]byte{upward, downward} {
			n, progress := p.Read(dir, b)
			if n < 0 || n > len(b) {
				t.Fatalf("%d of %d bytes", n, len(b))
			}
			if m, again := p.Read(dir, b[n:]); progress == Ready && (m != 0 || again != Ready) {
				t.Fatalf("%d more bytes after the preamble", m)
			}
		}
	})
}
