package tlsread_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"mplab/analysis/mptrace/internal/fixture"
	"mplab/analysis/mptrace/internal/payload/stream"
	"mplab/analysis/mptrace/internal/payload/tlskeys"
	"mplab/analysis/mptrace/internal/payload/tlsread"
)

// talk is a connection between two ends of crypto/tls.
type talk struct {
	keys *tlskeys.Log
	wire [2][]byte
	said [2][]byte
}

type recorder struct {
	net.Conn
	up, down *bytes.Buffer
}

func (r recorder) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	r.down.Write(b[:n])
	return n, err
}

func (r recorder) Write(b []byte) (int, error) {
	r.up.Write(b)
	return r.Conn.Write(b)
}

func converse(t testing.TB, version, suite uint16) talk {
	t.Helper()
	here, there := net.Pipe()
	var up, down, keys bytes.Buffer
	out := talk{said: [2][]byte{bytes.Repeat([]byte("question "), 30), bytes.Repeat([]byte("answer "), 4000)}}
	pair, _ := certificate(t, t.TempDir())
	var both sync.WaitGroup
	both.Go(func() {
		server := tls.Server(there, &tls.Config{Certificates: []tls.Certificate{pair}, CipherSuites: []uint16{suite}, MinVersion: version}) // #nosec G402
		_, _ = io.ReadFull(server, make([]byte, len(out.said[0])))
		_, _ = server.Write(out.said[1])
		_ = server.Close()
	})
	client := tls.Client(recorder{here, &up, &down}, &tls.Config{
		InsecureSkipVerify: true, ServerName: "tls.example", MinVersion: version, MaxVersion: version, CipherSuites: []uint16{suite}, KeyLogWriter: &keys, // #nosec G402
	})
	_, _ = client.Write(out.said[0])
	if got, err := io.ReadAll(client); err != nil || !bytes.Equal(got, out.said[1]) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	_ = client.Close()
	both.Wait()
	log, err := tlskeys.Open(fixture.File(t, keys.String()))
	if err != nil {
		t.Fatal(err)
	}
	out.keys, out.wire = log, [2][]byte{up.Bytes(), down.Bytes()}
	return out
}

func conversations(t testing.TB) []talk {
	t.Helper()
	return []talk{
		converse(t, tls.VersionTLS13, tls.TLS_AES_128_GCM_SHA256),
		converse(t, tls.VersionTLS12, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
		converse(t, tls.VersionTLS12, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
		converse(t, tls.VersionTLS12, tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA),
	}
}

func TestConversationsAreDecrypted(t *testing.T) {
	for i, c := range conversations(t) {
		plain, err := decrypt(t, c.keys, c.wire)
		if err != nil || !bytes.Equal(plain[0], c.said[0]) || !bytes.Equal(plain[1], c.said[1]) {
			t.Errorf("%d: %v, %d and %d bytes", i, err, len(plain[0]), len(plain[1]))
		}
	}
}

func TestErrorsSayWhy(t *testing.T) {
	c := conversations(t)[1]
	swapped := [2][]byte{c.wire[0], bytes.Clone(c.wire[1])}
	swapped[1][5+4+2+32+1+int(swapped[1][43])+1] ^= 0xff // low byte of the suite
	for name, one := range map[string]struct {
		keys *tlskeys.Log
		wire [2][]byte
		want error
	}{
		"no keys":       {nil, c.wire, tlsread.ErrNoKeys},
		"not TLS":       {c.keys, [2][]byte{[]byte("GET / HTTP/1.1\r\n\r\n"), nil}, tlsread.ErrMalformed},
		"a long record": {c.keys, [2][]byte{{22, 3, 1, 0xff, 0xff}, nil}, tlsread.ErrMalformed},
		"a suite":       {c.keys, swapped, tlsread.ErrUnsupported},
		"data at once":  {c.keys, [2][]byte{c.wire[0], {23, 3, 3, 0, 1, 0}}, tlsread.ErrMalformed},
		"old TLS":       {c.keys, [2][]byte{c.wire[0], {22, 3, 1, 0, 42, 2, 0, 0, 38, 3, 1, 47: 0}}, tlsread.ErrUnsupported},
	} {
		if _, err := decrypt(t, one.keys, one.wire); !errors.Is(err, one.want) {
			t.Errorf("%s: %v, want %v", name, err, one.want)
		}
	}
}

func TestRecordsBelongToSubflowsInProportion(t *testing.T) {
	c := conversations(t)[0]
	var scratch []byte
	s := tlsread.New(c.keys, &scratch)
	pool := stream.NewPool(1 << 24)
	var in [2]stream.Buffer
	for dir := range in {
		in[dir] = stream.NewBuffer(pool)
	}
	// The first data record is the client's last record except for its alert.
	alert := len(c.wire[0]) - 5 - 2 - 1 - 16
	record := alert - 5 - len(c.said[0]) - 1 - 16
	half := record + (alert-record)/2
	in[0].Append(c.wire[0][:record], 1, 0)
	in[0].Append(c.wire[0][record:half], 9, 1)
	in[0].Append(c.wire[0][half:alert], 5, 2)
	in[1].Append(c.wire[1], 2, 0)
	var got []stream.Run
	for _, dir := range []int{0, 1, 0} {
		if err := s.Advance(dir, &in[dir], func(_ []byte, runs []stream.Run) {
			if dir == 0 {
				got = append(got, runs...)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	n := uint64(len(c.said[0]))
	if len(got) != 2 || got[0] != (stream.Run{TimeNS: 9, Subflow: 1, Bytes: n / 2}) || got[1] != (stream.Run{TimeNS: 9, Subflow: 2, Bytes: n - n/2}) {
		t.Errorf("%+v of %d bytes", got, n)
	}
}

func TestThePartOfAHelloThatWasCaptured(t *testing.T) {
	c := conversations(t)[0]
	at := bytes.Index(c.wire[0], []byte("tls.example")) + len("tls.example")
	for n := range 600 {
		if n > len(c.wire[0]) {
			break
		}
		var scratch []byte
		s := tlsread.New(nil, &scratch)
		in := stream.NewBuffer(stream.NewPool(1 << 20))
		in.Append(c.wire[0][:n], 1, 0)
		hello := s.Partial(&in)
		if want := map[bool]string{true: "tls.example"}[n >= at]; hello.ServerName != want {
			t.Fatalf("%d bytes: %q", n, hello.ServerName)
		}
	}
}

// FuzzTampering changes a byte: the decrypted data is a prefix of the sent
// data.
func FuzzTampering(f *testing.F) {
	all := conversations(f)
	for i := range all {
		f.Add(uint8(i), uint8(0), uint32(100), uint8(1), []byte{})
		f.Add(uint8(i), uint8(1), uint32(9), uint8(0x80), []byte{22, 3, 3, 0, 4, 1, 0, 0, 0})
	}
	f.Fuzz(func(t *testing.T, which, dir uint8, at uint32, flip uint8, insert []byte) {
		c := all[int(which)%len(all)]
		wire := [2][]byte{bytes.Clone(c.wire[0]), bytes.Clone(c.wire[1])}
		b := wire[dir&1]
		i := int(at) % len(b)
		b[i] ^= flip
		wire[dir&1] = append(append(bytes.Clone(b[:i]), insert...), b[i:]...)
		plain, _ := decrypt(t, c.keys, wire)
		for dir := range plain {
			if !strings.HasPrefix(string(c.said[dir]), string(plain[dir])) {
				t.Fatalf("direction %d: %q was never said", dir, plain[dir])
			}
		}
	})
}

func BenchmarkDecrypt(b *testing.B) {
	c := conversations(b)[0]
	b.SetBytes(int64(len(c.wire[1])))
	b.ReportAllocs()
	var scratch []byte
	for b.Loop() {
		s := tlsread.New(c.keys, &scratch)
		pool := stream.NewPool(1 << 24)
		var in [2]stream.Buffer
		for _, dir := range []int{0, 1} {
			in[dir] = stream.NewBuffer(pool)
			in[dir].Append(c.wire[dir], 1, 0)
			if err := s.Advance(dir, &in[dir], func([]byte, []stream.Run) {}); err != nil {
				b.Fatal(err)
			}
		}
	}
}
