package payload_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/net/dns/dnsmessage"

	"mplab/analysis/mptrace/internal/fixture"
	"mplab/analysis/mptrace/internal/payload"
	"mplab/analysis/mptrace/internal/payload/proxied"
	"mplab/analysis/mptrace/tables"
	"mplab/mpflex/wire"
)

// greeting returns the ClientHello of crypto/tls for a server.
func greeting(t *testing.T, server string) []byte {
	t.Helper()
	here, there := net.Pipe()
	go func() {
		_ = tls.Client(here, &tls.Config{ServerName: server, MinVersion: tls.VersionTLS12}).Handshake()
	}()
	b := make([]byte, 1<<14)
	n, err := there.Read(b)
	_, _ = here.Close(), there.Close()
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

// records splits a handshake record into several.
func records(hello []byte, size int) []byte {
	var out []byte
	for body := hello[5:]; len(body) > 0; body = body[min(size, len(body)):] {
		part := body[:min(size, len(body))]
		out = append(out, hello[:3]...)
		out = binary.BigEndian.AppendUint16(out, uint16(len(part)))
		out = append(out, part...)
	}
	return out
}

// summary formats the row of a connection.
func summary(row tables.Connection) string {
	return fmt.Sprintf("%s %s %s:%d", row.Host, row.HostSource, row.Destination, row.DestPort)
}

func TestServerNames(t *testing.T) {
	hello := greeting(t, "Name.Example")
	for _, size := range []int{1 << 14, 100, 7} {
		for how := inOrder; how <= scattered; how++ {
			got := play(t, payload.Options{}, cut(pick(3), []chunk{{up, records(hello, size)}, {down, []byte("\x16\x03\x03")}}, how))
			if summary(got.row) != "name.example sni :0" {
				t.Errorf("records of %d: %s", size, summary(got.row))
			}
		}
	}
}

func TestNamesInWhatWasCapturedOfTheFirstPacket(t *testing.T) {
	hello := greeting(t, "name.example")
	hello = hello[:bytes.Index(hello, []byte("name.example"))+12]
	head := []byte("GET / HTTP/1.1\r\nHost: www.example:8080\r\nCookie: 12")
	for want, b := range map[string][]byte{"name.example sni :0": hello, "www.example http :0": head} {
		for _, objects := range []*tables.Stream[tables.Object]{nil, {}} {
			r := payload.New(payload.Options{Objects: objects})
			c := connection(443)
			p := r.For(c)
			p.Data(up, 0, b, 1, 0)
			p.Skip(up, uint64(len(b)), 1000, 1, 0)
			p.Data(up, uint64(len(b))+1000, []byte("rest"), 2, 0)
			p.End()
			var row tables.Connection
			if r.Describe(&row, c); summary(row) != want || r.Kept() != 0 {
				t.Errorf("%s, want %s, %d bytes kept", summary(row), want, r.Kept())
			}
		}
	}
}

func TestAConnectionIsOfNoCostOnceItsNameIsKnown(t *testing.T) {
	for _, begin := range [][]byte{greeting(t, "name.example"), []byte("GET / HTTP/1.1\r\nHost: www.example\r\n\r\n"), []byte("SSH-2.0-OpenSSH\r\n")} {
		r := payload.New(payload.Options{})
		p := r.For(connection(443))
		p.Data(up, 0, begin, 1, 0)
		if r.Kept() != 0 {
			t.Errorf("%.10q: %d bytes are kept", begin, r.Kept())
		}
		segment := make([]byte, 1400)
		if n := testing.AllocsPerRun(100, func() { p.Data(down, 5000, segment, 2, 0) }); n != 0 {
			t.Errorf("%.10q: %v allocations", begin, n)
		}
	}
}

// proxies returns the bytes exchanged before those of the application.
func proxies(t *testing.T) map[string][2]string {
	t.Helper()
	h := wire.Hello{Command: wire.Connect, Time: time.Now(), Source: netip.MustParseAddrPort("10.0.0.9:39000"), Destination: netip.MustParseAddrPort("192.0.2.7:443")}
	status := "MPFX\x01\x00\x00\x28" + string(make([]byte, 32))
	connect := [2]string{"CONNECT far.example:443 HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n"}
	hello := string(h.Append(nil, []byte("secret")))
	return map[string][2]string{
		"192.0.2.7:443":   {hello, status},
		"192.0.2.8:443":   {"\x05\x01\x00\x05\x01\x00\x01\xc0\x00\x02\x08\x01\xbb", "\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"},
		"far.example:443": {connect[0], connect[1]},
		"one.example:443": {hello + strings.ReplaceAll(connect[0], "far", "one"), status + connect[1]}, // a proxy behind the proxy
	}
}

func TestNamesAndObjectsBehindAProxy(t *testing.T) {
	question, answer := "GET /x HTTP/1.1\r\nHost: www.example\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
	hello := string(greeting(t, "name.example"))
	for destination, said := range proxies(t) {
		for how := inOrder; how <= scattered; how++ {
			chunks := []chunk{{up, []byte(said[0] + question)}, {down, []byte(said[1])}, {down, []byte(answer)}}
			got := play(t, payload.Options{Objects: &tables.Stream[tables.Object]{}}, cut(pick(4), chunks, how))
			if summary(got.row) != "www.example http "+destination || len(got.objects) != 1 || got.objects[0].ResponseBody != 5 || !got.objects[0].Complete {
				t.Errorf("%s: %s, %+v, %+v", destination, summary(got.row), got.objects, got.warnings)
			}
			got = play(t, payload.Options{}, cut(pick(5), []chunk{{up, []byte(said[0] + hello)}, {down, []byte(said[1])}}, how))
			if summary(got.row) != "name.example sni "+destination {
				t.Errorf("%s: %s", destination, summary(got.row))
			}
		}
	}
}

func TestObjectsOfTLSBehindAProxy(t *testing.T) {
	chunks, keys := fetch(t, &tls.Config{MinVersion: tls.VersionTLS13}, true)
	for destination, said := range proxies(t) {
		all := append([]chunk{{up, []byte(said[0])}, {down, []byte(said[1])}}, chunks...)
		pieces := cut(pick(6), all, reordered)
		got := play(t, payload.Options{Keys: keys, Objects: &tables.Stream[tables.Object]{}}, pieces)
		check(t, got.objects, "https://web.example", "h2", reordered, pieces[len(pieces)-1].timeNS)
		if summary(got.row) != "web.example sni "+destination {
			t.Errorf("%s: %s", destination, summary(got.row))
		}
	}
}

// sealed returns the text encoded for ShadowSocks.
func sealed(table *proxied.Table, text string) []byte {
	var seal [256]byte
	for wire, plain := range table.Bytes() {
		seal[plain] = byte(wire)
	}
	out := []byte(text)
	for i, c := range out {
		out[i] = seal[c]
	}
	return out
}

func TestShadowSocks(t *testing.T) {
	table := proxied.NewTable("foobar!")
	question, answer := "GET /x HTTP/1.1\r\nHost: www.example\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
	for destination, request := range map[string]string{
		"192.0.2.7:80":   "\x01\xc0\x00\x02\x07\x00\x50",
		"8.8.8.8:53":     "\x03\x078.8.8.8\x00\x35",
		"far.example:80": "\x03\x0bfar.example\x00\x50",
	} {
		for _, apart := range []bool{true, false} {
			pieces := []piece{
				{dir: up, b: sealed(table, request), timeNS: 1}, {dir: up, offset: uint64(len(request)), b: sealed(table, question), timeNS: 2},
				{dir: down, b: sealed(table, answer), timeNS: 3},
			}
			if !apart {
				pieces = []piece{{dir: up, b: sealed(table, request+question), timeNS: 2}, pieces[2]}
			}
			got := play(t, payload.Options{Table: table, Objects: &tables.Stream[tables.Object]{}}, pieces)
			want := "www.example http " + destination
			if strings.HasSuffix(destination, ":53") {
				want = " " + " " + destination
			}
			if summary(got.row) != want || (len(got.objects) != 1) != strings.HasSuffix(destination, ":53") {
				t.Errorf("%s: %s, %+v", destination, summary(got.row), got.objects)
			}
		}
	}
	clear := play(t, payload.Options{Table: table}, []piece{{dir: up, b: []byte(question), timeNS: 1}})
	if summary(clear.row) != "www.example http :0" {
		t.Errorf("clear text: %s", summary(clear.row))
	}
	if host := play(t, payload.Options{Table: table}, []piece{{dir: up, b: sealed(table, "\x03\x0bfar.example\x00\x16SSH-2.0-x\r\n"), timeNS: 1}}); summary(host.row) != "far.example proxy far.example:22" {
		t.Errorf("the host of the request: %s", summary(host.row))
	}
}

// answer53 returns a DNS answer with an alias and addresses.
func answer53(t *testing.T, name string, addresses ...string) []byte {
	t.Helper()
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{Response: true})
	b.EnableCompression()
	owner, alias := dnsmessage.MustNewName(name), dnsmessage.MustNewName("alias.example.")
	fail := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	fail(b.StartQuestions())
	fail(b.Question(dnsmessage.Question{Name: owner, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}))
	fail(b.StartAnswers())
	fail(b.CNAMEResource(dnsmessage.ResourceHeader{Name: owner, Class: dnsmessage.ClassINET}, dnsmessage.CNAMEResource{CNAME: alias}))
	for _, text := range addresses {
		a := netip.MustParseAddr(text)
		if a.Is4() {
			fail(b.AResource(dnsmessage.ResourceHeader{Name: alias, Class: dnsmessage.ClassINET}, dnsmessage.AResource{A: a.As4()}))
		} else {
			fail(b.AAAAResource(dnsmessage.ResourceHeader{Name: alias, Class: dnsmessage.ClassINET}, dnsmessage.AAAAResource{AAAA: a.As16()}))
		}
	}
	out, err := b.Finish()
	fail(err)
	return out
}

func describe(r *payload.Reader, server string, startNS int64) string {
	row := tables.Connection{Client: "10.0.0.9", ClientPort: 1, Server: server, ServerPort: 443, StartNS: startNS}
	r.Describe(&row, connection(443))
	return strings.TrimSpace(row.Host + " " + row.HostSource)
}

func TestNamesFromDNS(t *testing.T) {
	r := payload.New(payload.Options{})
	r.UDP(answer53(t, "One.Example.", "192.0.2.1", "2001:db8::1"), 100)
	r.UDP(answer53(t, "two.example.", "192.0.2.1"), 200)
	whole := answer53(t, "cut.example.", "192.0.2.2", "192.0.2.3")
	r.UDP(whole[:len(whole)-3], 100)
	r.UDP([]byte("not a message"), 100)
	for _, c := range []struct {
		server string
		start  int64
		want   string
	}{
		{"192.0.2.1", 99, ""}, {"192.0.2.1", 100, "one.example dns"}, {"192.0.2.1", 199, "one.example dns"}, {"192.0.2.1", 200, "two.example dns"},
		{"2001:db8::1", 500, "one.example dns"}, {"192.0.2.2", 500, "cut.example dns"}, {"192.0.2.3", 500, ""}, {"192.0.2.9", 500, ""},
	} {
		if got := describe(r, c.server, c.start); got != c.want {
			t.Errorf("%s at %d: %q, want %q", c.server, c.start, got, c.want)
		}
	}
}

func TestNamesFromDNSOverTCP(t *testing.T) {
	message := func(b []byte) []byte { return append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...) }
	answers := append(message(answer53(t, "one.example.", "192.0.2.1")), message(make([]byte, 60000))...) // beyond the limit
	answers = append(answers, message(answer53(t, "two.example.", "192.0.2.2"))...)
	said := proxies(t)["192.0.2.7:443"]
	said[0] = strings.ReplaceAll(said[0], "\x01\xbb\xc0\x00\x02\x07", "\x00\x35\xc0\x00\x02\x07")
	for _, before := range [][2]string{{}, said} {
		for how := inOrder; how <= scattered; how++ {
			r := payload.New(payload.Options{})
			p := r.For(connection(map[bool]uint16{true: 53, false: 7002}[before[0] == ""]))
			chunks := []chunk{{up, []byte(before[0] + "\x00\x04ask?")}, {down, []byte(before[1])}, {down, answers}}
			for _, one := range cut(pick(7), chunks, how) {
				p.Data(one.dir, one.offset, one.b, one.timeNS, one.subflow)
			}
			p.End()
			if a, b := describe(r, "192.0.2.1", 1e12), describe(r, "192.0.2.2", 1e12); a != "one.example dns" || b != "two.example dns" || r.Kept() != 0 {
				t.Errorf("%q, %q, %d bytes kept", a, b, r.Kept())
			}
		}
	}
}

func TestTheLogTellsDestinationAndApplication(t *testing.T) {
	l, err := proxied.Open(fixture.File(t,
		`{"event":"connection","opened":10,"duration_s":1,"src":"10.1.0.1:39000","dst":"192.0.2.1:443","local":"10.0.0.9:40000","remote":"10.0.0.1:7002","process":"curl"}`))
	if err != nil {
		t.Fatal(err)
	}
	r := payload.New(payload.Options{Log: l})
	r.UDP(answer53(t, "one.example.", "192.0.2.1"), 100)
	row := tables.Connection{Client: "10.0.0.9", ClientPort: 40000, Server: "10.0.0.1", ServerPort: 7002, StartNS: 10e9}
	r.Describe(&row, connection(7002))
	if summary(row) != "one.example dns 192.0.2.1:443" || row.Application != "curl" {
		t.Errorf("%s, %s", summary(row), row.Application)
	}
}

func FuzzReader(f *testing.F) {
	table := proxied.NewTable("foobar!")
	f.Add([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), []byte("HTTP/1.1 200 OK\r\n\r\nx"), uint64(1), false)
	f.Add(sealed(table, "\x01\xc0\x00\x02\x07\x00\x50GET / HTTP/1.1\r\n\r\n"), []byte("x"), uint64(2), true)
	f.Add([]byte("\x05\x01\x00\x05\x01\x00\x01\xc0\x00\x02\x08\x00\x35\x00\x01x"), []byte("\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01x"), uint64(3), false)
	f.Fuzz(func(t *testing.T, upward, downward []byte, seed uint64, cipher bool) {
		o := payload.Options{Objects: &tables.Stream[tables.Object]{}, MaxTotal: 1 << 18}
		if cipher {
			o.Table = table
		}
		r := payload.New(o)
		c := connection(uint16(seed))
		p := r.For(c)
		for _, one := range cut(pick(seed), []chunk{{up, upward}, {down, downward}}, scattered) {
			if one.timeNS%13 == 0 {
				p.Skip(one.dir, one.offset, uint64(len(one.b)), one.timeNS, one.subflow)
				continue
			}
			p.Data(one.dir, one.offset, one.b, one.timeNS, one.subflow)
			if r.Kept() > 1<<18 {
				t.Fatalf("%d bytes are kept", r.Kept())
			}
		}
		p.End()
		var row tables.Connection
		r.Describe(&row, c)
		texts := []string{row.Host, row.Destination}
		for _, one := range o.Objects.Rows() {
			texts = append(texts, one.Method, one.URL, one.Type)
		}
		if !utf8.ValidString(strings.Join(texts, "")) {
			t.Fatalf("%q", texts)
		}
		if r.Kept() != 0 {
			t.Fatalf("%d bytes are kept after the end", r.Kept())
		}
	})
}
