package sniff

import (
	"bufio"
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"mplab/internal/tlshello"
)

const extensionServerName = 0 // RFC 6066 §3

// clientHelloOf returns the first bytes of a real TLS client.
func clientHelloOf(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	client, server := net.Pipe()
	defer client.Close() //nolint:errcheck // in memory
	defer server.Close() //nolint:errcheck // in memory
	go func() {
		_ = tls.Client(client, config).Handshake()
		_ = client.Close()
	}()
	header := make([]byte, tlshello.RecordHeader)
	if _, err := io.ReadFull(server, header); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, binary.BigEndian.Uint16(header[3:]))
	if _, err := io.ReadFull(server, body); err != nil {
		t.Fatal(err)
	}
	return append(header, body...)
}

// encrypted returns the configuration of a client that hides its name behind that of a
// provider (RFC 9849 §4).
func encrypted(t testing.TB, inner, outer string) *tls.Config {
	t.Helper()
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	contents := []byte{7, 0, 0x20, 0, 32} // config_id, DHKEM(X25519), the key's size
	contents = append(contents, key.PublicKey().Bytes()...)
	contents = append(contents, 0, 4, 0, 1, 0, 1, 64, byte(len(outer))) // HKDF-SHA256 and AES-128-GCM, longest name
	contents = append(append(contents, outer...), 0, 0)
	config := binary.BigEndian.AppendUint16([]byte{0xfe, 0x0d}, uint16(len(contents)))
	config = append(config, contents...)
	list := append(binary.BigEndian.AppendUint16(nil, uint16(len(config))), config...)
	return &tls.Config{ServerName: inner, MinVersion: tls.VersionTLS13, EncryptedClientHelloConfigList: list}
}

// records splits the message of one record into several records of at most size bytes.
func records(record []byte, size int) []byte {
	var cut []byte
	for message := record[tlshello.RecordHeader:]; len(message) > 0; {
		n := min(size, len(message))
		cut = binary.BigEndian.AppendUint16(append(cut, record[:3]...), uint16(n))
		cut = append(cut, message[:n]...)
		message = message[n:]
	}
	return cut
}

// grow adds the data byte by byte, as it could arrive. The verdict must not change once
// it is reached.
func grow(t testing.TB, about string, data []byte) Result {
	t.Helper()
	last := Result{}
	for n := range len(data) + 1 {
		got := First(data[:n])
		if last.Verdict != NeedMore && got != last {
			t.Fatalf("%s: after %d bytes %+v, before %+v", about, n, got, last)
		}
		last = got
	}
	return last
}

func TestServerNames(t *testing.T) {
	cases := []struct {
		about  string
		config *tls.Config
		want   Result
	}{
		{"TLS 1.3", &tls.Config{ServerName: "www.Example.org"}, Result{Named, "www.example.org", SNI}},
		{"TLS 1.2", &tls.Config{ServerName: "example.org", MaxVersion: tls.VersionTLS12}, Result{Named, "example.org", SNI}},
		{"several protocols", &tls.Config{ServerName: "example.org", NextProtos: []string{"h2", "http/1.1"}}, Result{Named, "example.org", SNI}},
		{"an address", &tls.Config{ServerName: "192.0.2.1", InsecureSkipVerify: true}, none},
		{"no name", &tls.Config{InsecureSkipVerify: true}, none},
		{"encrypted hello", encrypted(t, "secret.example", "provider.example"), Result{Named, "provider.example", SNI}},
	}
	for _, c := range cases {
		hello := clientHelloOf(t, c.config)
		if got := grow(t, c.about, hello); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.about, got, c.want)
		}
		if got := First(append(bytes.Clone(hello), 20, 3, 3, 0, 1, 1)); got != c.want {
			t.Errorf("%s, something behind it: %+v", c.about, got)
		}
		for _, size := range []int{1, 7, 64, 1000} {
			if got := grow(t, c.about, records(hello, size)); got != c.want {
				t.Errorf("%s in records of %d: %+v, want %+v", c.about, size, got, c.want)
			}
		}
	}
}

// hello builds a ClientHello with extensions. Each has its number and its data.
func hello(extensions ...[]byte) []byte {
	block := bytes.Join(extensions, nil)
	body := append([]byte{3, 3}, make([]byte, 32)...)
	body = append(body, 0)                   // no session id
	body = append(body, 0, 2, 0x13, 1, 1, 0) // one cipher suite, no compression
	body = binary.BigEndian.AppendUint16(body, uint16(len(block)))
	body = append(body, block...)
	message := append([]byte{tlshello.ClientHello, 0, byte(len(body) >> 8), byte(len(body))}, body...)
	return append([]byte{tlshello.RecordHandshake, 3, 1, byte(len(message) >> 8), byte(len(message))}, message...)
}

func extension(kind uint16, data ...byte) []byte {
	e := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, kind), uint16(len(data)))
	return append(e, data...)
}

func nameExtension(name string) []byte {
	entry := append([]byte{0, 0, byte(len(name))}, name...)
	return extension(extensionServerName, append([]byte{0, byte(len(entry))}, entry...)...)
}

// change returns a copy with other bytes at an offset.
func change(data []byte, at int, with ...byte) []byte {
	changed := bytes.Clone(data)
	copy(changed[at:], with)
	return changed
}

func TestClientHellos(t *testing.T) {
	good := hello(nameExtension("a.example"))
	nameAt := bytes.Index(good, []byte("a.example"))
	cases := []struct {
		about string
		data  []byte
		want  Result
	}{
		{"good", good, Result{Named, "a.example", SNI}},
		{"a final dot", hello(nameExtension("A.example.")), Result{Named, "a.example", SNI}},
		{"behind others", hello(extension(23), extension(16, 1, 2, 3), nameExtension("a.example")), Result{Named, "a.example", SNI}},
		{"no extensions", hello(), none},
		{"no server name", hello(extension(23)), none},
		{"no host name in it", hello(extension(extensionServerName, 0, 4, 7, 0, 1, 'a')), none},
		{"an empty list", hello(extension(extensionServerName, 0, 0)), none},
		{"an empty name", hello(extension(extensionServerName, 0, 3, 0, 0, 0)), none},
		{"not a name", hello(nameExtension("a b")), none},
		{"the name reaches beyond its list", change(good, nameAt-1, 10), none},
		{"the list reaches beyond its extension", change(good, nameAt-4, 13), none},
		{"the extension reaches beyond the message", change(good, nameAt-6, 15), none},
		{"the extensions reach beyond the message", change(good, nameAt-10, 255), none},
		{"a server's hello", change(good, tlshello.RecordHeader, 2), none},
		{"an alert", change(good, 0, 21), none},
		{"not TLS", change(good, 1, 2), none},
		{"an empty record", append([]byte{tlshello.RecordHandshake, 3, 1, 0, 0}, good...), none},
		{"a record too large", change(good, 3, 0x40, 1), none},
		{"an alert inside the hello", append(records(good, 40)[:45], 21, 3, 3, 0, 2, 2, 0), none},
	}
	for _, c := range cases {
		if got := grow(t, c.about, c.data); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.about, got, c.want)
		}
	}
}

func TestLimit(t *testing.T) {
	padding := func(n int) []byte { return extension(21, make([]byte, n)...) }
	near := hello(padding(Limit-200), nameExtension("a.example"))
	if got := First(near); got != (Result{Named, "a.example", SNI}) {
		t.Errorf("%+v", got)
	}
	far := records(append(bytes.Clone(hello(padding(12000), padding(12000), nameExtension("a.example"))), 0), 1<<14)
	far = far[:len(far)-1]
	for name, data := range map[string][]byte{
		"tls": far, "http": []byte("GET / HTTP/1.1\r\nX: " + strings.Repeat("x", Limit) + "\r\nHost: a.example\r\n\r\n"),
		"request line": []byte("GET /" + strings.Repeat("x", Limit)), "line ends": bytes.Repeat([]byte("\r\n"), Limit),
	} {
		if got := First(data[:Limit-1]); got != needMore {
			t.Errorf("%s before the limit: %+v", name, got)
		}
		if got := First(data[:Limit]); got != none {
			t.Errorf("%s at the limit: %+v", name, got)
		}
		if got := First(data); got != none {
			t.Errorf("%s beyond the limit: %+v", name, got)
		}
	}
}

func TestRequests(t *testing.T) {
	cases := []struct {
		request string
		name    string // "": no name
	}{
		{"GET / HTTP/1.1\r\nHost: www.Example.org\r\n\r\n", "www.example.org"},
		{"GET / HTTP/1.1\r\nUser-Agent: x\r\nhOsT:\t example.org:8080 \r\nAccept: */*\r\n\r\n", "example.org"},
		{"POST /a?b=c HTTP/1.0\nHost: a.example\n\n", "a.example"},
		{"\r\n\r\nGET / HTTP/1.1\r\nHost: a.example\r\n\r\n", "a.example"},
		{"OPTIONS * HTTP/1.1\r\nHost: a.example.\r\n\r\n", "a.example"},
		{"GET http://user@b.example:81/x?http://c.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", "b.example"},
		{"GET /?u=http://c.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", "a.example"},
		{"CONNECT b.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n", "b.example"},
		{"PROPFIND / HTTP/1.1\r\nX: 1\r\n Host: folded.example\r\nHost: a.example\r\n\r\n", "a.example"},
		{"GET / HTTP/1.1\r\nXHost: a.example\r\n\r\n", ""},
		{"GET / HTTP/1.0\r\n\r\nHost: body.example\r\n\r\n", ""},
		{"GET / HTTP/1.1\r\nHost: 192.0.2.1:80\r\n\r\n", ""},
		{"GET / HTTP/1.1\r\nHost: [2001:db8::1]\r\n\r\n", ""},
		{"GET / HTTP/1.1\r\nHost:\r\n\r\n", ""},
		{"GET / HTTP/1.1\r\nHost : a.example\r\n\r\n", ""},
		{"GET / HTTP/1.1\r\nno colon\r\nHost: a.example\r\n\r\n", ""},
		{"GET / HTTP/2.0\r\nHost: a.example\r\n\r\n", ""},
		{"GET  / HTTP/1.1\r\nHost: a.example\r\n\r\n", ""},
		{"GET /\r\nHost: a.example\r\n\r\n", ""},
		{"GET /\x01 HTTP/1.1\r\nHost: a.example\r\n\r\n", ""},
		{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ""},
		{"PRINT / HTTP/1.1\r\nHost: a.example\r\n\r\n", "a.example"},
		{"SSH-2.0-OpenSSH_9.9\r\n", ""},
		{"A-WORD-THAT-IS-TOO-LONG-FOR-A-METHOD", ""},
		{"\x00\x01\x02", ""},
		{"(GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", ""},
	}
	for _, c := range cases {
		want := none
		if c.name != "" {
			want = Result{Named, c.name, Host}
		}
		if got := grow(t, c.request, []byte(c.request)); got != want {
			t.Errorf("%q: %+v, want %+v", c.request, got, want)
		}
	}
}

// TestRealRequests checks that the name found in a request of a real client is the one
// that a real server parses.
func TestRealRequests(t *testing.T) {
	for _, url := range []string{"http://www.example.org/", "http://A.example:8080/x?y#z", "http://xn--bcher-kva.example/"} {
		for _, write := range []func(*http.Request, io.Writer) error{(*http.Request).Write, (*http.Request).WriteProxy} {
			request, err := http.NewRequest("POST", url, strings.NewReader("Host: body.example"))
			if err != nil {
				t.Fatal(err)
			}
			var sent bytes.Buffer
			if err := write(request, &sent); err != nil {
				t.Fatal(err)
			}
			seen, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(sent.Bytes())))
			if err != nil {
				t.Fatal(err)
			}
			host, _, _ := strings.Cut(seen.Host, ":")
			if got := grow(t, url, sent.Bytes()); got != (Result{Named, strings.ToLower(host), Host}) {
				t.Errorf("%s: %+v, the server sees %s", url, got, seen.Host)
			}
		}
	}
}

func TestNothingYet(t *testing.T) {
	for _, data := range []string{"", "G", "GET", "GET ", "\r", "\r\n", "\x16", "\x16\x03"} {
		if got := First([]byte(data)); got != needMore || got.Verdict.String() != "need more" {
			t.Errorf("%q: %+v", data, got)
		}
	}
}

// FuzzFirst: more bytes never change a verdict, and there is a verdict within the
// limit.
func FuzzFirst(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"), uint16(9))
	f.Add([]byte("CONNECT b.example:443 HTTP/1.1\r\n\r\n"), uint16(3))
	f.Add(hello(extension(23), nameExtension("a.example")), uint16(50))
	f.Add(records(hello(nameExtension("a.example")), 7), uint16(20))
	f.Fuzz(func(t *testing.T, data []byte, cut uint16) {
		whole := First(data)
		part := First(data[:min(int(cut), len(data))])
		if part.Verdict != NeedMore && part != whole {
			t.Errorf("%+v of a part, %+v of the whole", part, whole)
		}
		if (whole.Verdict == Named) != (whole.Name != "") || (whole.Verdict == Named) != (whole.Source != "") {
			t.Errorf("%+v", whole)
		}
		if len(data) >= Limit && whole.Verdict == NeedMore {
			t.Error("no verdict at the limit")
		}
	})
}

func BenchmarkFirst(b *testing.B) {
	inputs := map[string][]byte{
		"tls":  clientHelloOf(b, &tls.Config{ServerName: "www.example.org"}),
		"http": []byte("GET / HTTP/1.1\r\nHost: www.example.org\r\nUser-Agent: curl/8\r\nAccept: */*\r\n\r\n"),
	}
	for name, data := range inputs {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if First(data).Verdict != Named {
					b.Fatal("no name")
				}
			}
		})
	}
}
