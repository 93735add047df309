package payload_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	mrand "math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"

	"math/big"
	"time"

	"mplab/analysis/mptrace/internal/fixture"
	"mplab/analysis/mptrace/internal/payload"
	"mplab/analysis/mptrace/internal/payload/tlskeys"
	"mplab/analysis/mptrace/tables"
)

// certificates are an RSA and an ECDSA certificate.
var certificates = sync.OnceValue(func() []tls.Certificate {
	rsaKey, _ := rsa.GenerateKey(rand.Reader, 2048)
	ecKey, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"web.example"}}
	a, _ := x509.CreateCertificate(rand.Reader, template, template, &rsaKey.PublicKey, rsaKey)
	b, _ := x509.CreateCertificate(rand.Reader, template, template, &ecKey.PublicKey, ecKey)
	return []tls.Certificate{{Certificate: [][]byte{a}, PrivateKey: rsaKey}, {Certificate: [][]byte{b}, PrivateKey: ecKey}}
})

// answer serves /STATUS/SIZE and reads request bodies.
func answer(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	parts := strings.Split(r.URL.Path, "/")
	status, _ := strconv.Atoi(parts[1])
	size, _ := strconv.Atoi(parts[2])
	w.Header().Set("Content-Type", "text/x-test")
	if r.URL.Query().Has("length") {
		w.Header().Set("Content-Length", strconv.Itoa(size))
	}
	w.WriteHeader(status)
	body := make([]byte, size)
	_, _ = mrand.NewChaCha8([32]byte{}).Read(body)
	for len(body) > 0 {
		n, err := w.Write(body[:min(len(body), 10_000)])
		if err != nil {
			return
		}
		body = body[n:]
	}
}

// asked are the requests of a test: some with a length, some chunked, some
// without a body.
var asked = []struct {
	method, path string
	send         int
	status       int
	body         int64
}{
	{"GET", "/200/0?length", 0, 200, 0},
	{"GET", "/200/5?length", 0, 200, 5},
	{"GET", "/200/100000", 0, 200, 100_000},
	{"HEAD", "/200/77?length", 0, 200, 0},
	{"POST", "/201/300?length", 20_000, 201, 300},
	{"GET", "/404/1234", 0, 404, 1234},
	{"GET", "/204/0", 0, 204, 0},
	{"GET", "/304/0", 0, 304, 0},
	{"GET", "/200/300000?length", 0, 200, 300_000},
}

// fetch sends all requests to a server over one connection, with HTTP/2 several
// at a time. It returns the transferred data and the key log.
func fetch(t *testing.T, config *tls.Config, version2 bool) ([]chunk, *tlskeys.Log) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(answer))
	server.EnableHTTP2 = version2
	server.TLS = &tls.Config{Certificates: certificates(), MinVersion: tls.VersionTLS12, CipherSuites: config.CipherSuites}
	server.StartTLS()
	defer server.Close()
	var keys bytes.Buffer
	n := &notes{}
	config = config.Clone()
	config.InsecureSkipVerify, config.ServerName, config.KeyLogWriter = true, "web.example", &keys // #nosec G402
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: config, ForceAttemptHTTP2: version2, MaxConnsPerHost: 1, DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return n.open(ctx, server.Listener.Addr().String())
		},
	}}
	requests(t, client, "https://web.example", version2)
	log, err := tlskeys.Open(fixture.File(t, keys.String()))
	if err != nil {
		t.Fatal(err)
	}
	if n.opened != 1 {
		t.Fatalf("%d connections", n.opened)
	}
	return n.all(), log
}

func requests(t *testing.T, client *http.Client, base string, together bool) {
	t.Helper()
	var all sync.WaitGroup
	for i, a := range asked {
		one := func() {
			r, _ := http.NewRequest(a.method, base+a.path, bytes.NewReader(make([]byte, a.send)))
			response, err := client.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
		if i == 0 || !together {
			one()
		} else {
			all.Go(one)
		}
	}
	all.Wait()
	client.CloseIdleConnections()
}

// check compares rows with the requests.
func check(t *testing.T, rows []tables.Object, base, protocol string, how disorder, last int64) {
	t.Helper()
	if len(rows) != len(asked) {
		t.Fatalf("%d objects, want %d: %+v", len(rows), len(asked), rows)
	}
	byURL := map[string]tables.Object{}
	for i, row := range rows {
		byURL[row.URL] = row
		if how == inOrder && i > 0 && row.RequestNS < rows[i-1].RequestNS {
			t.Errorf("request %d is out of order", i)
		}
	}
	for _, a := range asked {
		row, found := byURL[base+a.path]
		if !found {
			t.Errorf("no object %s", a.path)
			continue
		}
		if row.Method != a.method || int(row.Status) != a.status || row.RequestBody != int64(a.send) || row.ResponseBody != a.body ||
			!row.Complete || row.Protocol != protocol || row.ConnectionID != 7 || (a.status != 304 && a.status != 204 && row.Type != "text/x-test") {
			t.Errorf("%s: %+v", a.path, row)
		}
		if how != scattered && !(0 < row.RequestNS && row.RequestNS <= row.ResponseNS.Value && row.ResponseNS.Value <= row.EndNS.Value && row.EndNS.Value <= last) ||
			row.DurationMS.Value != float64(row.EndNS.Value-row.RequestNS)/1e6 {
			t.Errorf("%s: times %+v", a.path, row)
		}
		if sum, networks := total(row.Subflows), total(row.Networks); sum != networks || sum <= a.body || sum > a.body+row.HeaderBytes+2000 {
			t.Errorf("%s: %d bytes on subflows, %d on networks, body %d, headers %d", a.path, sum, networks, a.body, row.HeaderBytes)
		}
	}
}

// total sums up NAME:BYTES,….
func total(shares string) int64 {
	var sum int64
	for _, one := range strings.Split(shares, ",") {
		_, n, _ := strings.Cut(one, ":")
		bytes, _ := strconv.ParseInt(n, 10, 64)
		sum += bytes
	}
	return sum
}

// pick returns the random source of a test.
func pick(seed uint64) *mrand.Rand { return mrand.New(mrand.NewPCG(seed, 1)) }

// suites returns the TLS 1.2 cipher suites that can be decrypted.
func suites() []*tls.CipherSuite {
	var out []*tls.CipherSuite
	for _, s := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		if s.SupportedVersions[0] != tls.VersionTLS13 && !strings.Contains(s.Name, "RC4") && !strings.Contains(s.Name, "3DES") {
			out = append(out, s)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

func TestObjectsOfTLSAreThoseThatTheServerSent(t *testing.T) {
	type setting struct {
		name   string
		config *tls.Config
	}
	settings := []setting{{"TLS 1.3", &tls.Config{MinVersion: tls.VersionTLS13}}}
	for _, s := range suites() {
		settings = append(settings, setting{s.Name, &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{s.ID}}}) // #nosec G402
	}
	for _, s := range settings {
		t.Run(s.name, func(t *testing.T) {
			for _, version2 := range []bool{false, true} {
				if version2 && s.name != "TLS 1.3" && !strings.Contains(s.name, "_ECDHE_") || version2 && strings.Contains(s.name, "CBC") {
					continue // HTTP/2 forbids them
				}
				protocol := map[bool]string{false: "http/1.1", true: "h2"}[version2]
				chunks, keys := fetch(t, s.config, version2)
				for how := inOrder; how <= scattered; how++ {
					objects := &tables.Stream[tables.Object]{}
					pieces := cut(pick(1), chunks, how)
					got := play(t, payload.Options{Keys: keys, Objects: objects}, pieces)
					check(t, got.objects, "https://web.example", protocol, how, pieces[len(pieces)-1].timeNS)
					if got.warnings != (tables.Warnings{}) || got.row.Host != "web.example" || got.row.HostSource != "sni" {
						t.Errorf("%s, warnings %+v, %+v", protocol, got.warnings, got.row)
					}
				}
			}
		})
	}
}

func TestObjectsOfClearTextAreThoseThatTheServerSent(t *testing.T) {
	for _, version2 := range []bool{false, true} {
		protocol := map[bool]string{false: "http/1.1", true: "h2"}[version2]
		t.Run(protocol, func(t *testing.T) {
			n := &notes{}
			server := httptest.NewUnstartedServer(http.HandlerFunc(answer))
			protocols := new(http.Protocols)
			protocols.SetHTTP1(!version2)
			protocols.SetUnencryptedHTTP2(version2)
			server.Config.Protocols = protocols
			server.Start()
			defer server.Close()
			requests(t, &http.Client{Transport: &http.Transport{
				Protocols: protocols, MaxConnsPerHost: 1, DisableCompression: true,
				DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
					return n.open(ctx, server.Listener.Addr().String())
				},
			}}, "http://web.example:8080", version2)
			chunks := n.all()
			for how := inOrder; how <= scattered; how++ {
				pieces := cut(pick(2), chunks, how)
				got := play(t, payload.Options{Objects: &tables.Stream[tables.Object]{}}, pieces)
				check(t, got.objects, "http://web.example:8080", protocol, how, pieces[len(pieces)-1].timeNS)
				if got.warnings != (tables.Warnings{}) || got.row.Host != "web.example" || got.row.HostSource != "http" {
					t.Errorf("warnings %+v, %+v", got.warnings, got.row)
				}
				names := play(t, payload.Options{}, pieces)
				if names.row.Host != "web.example" || names.row.HostSource != "http" {
					t.Errorf("without objects: %+v", names.row)
				}
			}
		})
	}
}

func TestKeysOfAnotherConnectionGiveNoObjects(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		config := &tls.Config{MinVersion: version, MaxVersion: version} // #nosec G402
		chunks, _ := fetch(t, config, true)
		_, other := fetch(t, config, true)
		got := play(t, payload.Options{Keys: other, Objects: &tables.Stream[tables.Object]{}}, cut(pick(1), chunks, inOrder))
		if len(got.objects) != 0 || got.warnings != (tables.Warnings{}) || got.row.Host != "web.example" {
			t.Errorf("%x: %d objects, %+v, %+v", version, len(got.objects), got.warnings, got.row)
		}
	}
}

func TestWrongKeysGiveNoObjectsAndOneWarning(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		config := &tls.Config{MinVersion: version, MaxVersion: version} // #nosec G402
		chunks, _ := fetch(t, config, true)
		random := clientRandom(t, chunks)
		var keys strings.Builder
		for label, size := range map[string]int{"CLIENT_RANDOM": 48, "CLIENT_HANDSHAKE_TRAFFIC_SECRET": 32, "SERVER_HANDSHAKE_TRAFFIC_SECRET": 32,
			"CLIENT_TRAFFIC_SECRET_0": 32, "SERVER_TRAFFIC_SECRET_0": 32} {
			fmt.Fprintf(&keys, "%s %x %x\n", label, random, make([]byte, size))
		}
		log, err := tlskeys.Open(fixture.File(t, keys.String()))
		if err != nil {
			t.Fatal(err)
		}
		got := play(t, payload.Options{Keys: log, Objects: &tables.Stream[tables.Object]{}}, cut(pick(1), chunks, reordered))
		if len(got.objects) != 0 || got.warnings.PayloadUndecodable != 1 {
			t.Errorf("%x: %d objects, %+v", version, len(got.objects), got.warnings)
		}
	}
}

// clientRandom returns the client random in the first record, after the headers
// of record and message and the version.
func clientRandom(t *testing.T, chunks []chunk) []byte {
	t.Helper()
	if chunks[0].dir != up || len(chunks[0].b) < 43 {
		t.Fatal("the client did not begin")
	}
	return chunks[0].b[11:43]
}

func TestAHoleEndsADirectionWithWhatWasDecoded(t *testing.T) {
	chunks, keys := fetch(t, &tls.Config{MinVersion: tls.VersionTLS13}, false)
	pieces := cut(pick(1), chunks, inOrder)
	lost := len(pieces) * 3 / 4
	for pieces[lost].dir != down {
		lost++
	}
	got := play(t, payload.Options{Keys: keys, Objects: &tables.Stream[tables.Object]{}, MaxBytes: 100_000}, append(pieces[:lost:lost], pieces[lost+1:]...))
	complete := 0
	for _, o := range got.objects {
		if o.Complete {
			complete++
		}
	}
	if complete == 0 || complete == len(asked) || len(got.objects) != len(asked) || got.warnings.PayloadUndecodable != 1 {
		t.Errorf("%d of %d objects are complete, %+v", complete, len(got.objects), got.warnings)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	chunks, keys := fetch(t, &tls.Config{MinVersion: tls.VersionTLS13}, false)
	pieces := cut(pick(1), chunks, inOrder)
	r := payload.New(payload.Options{Keys: keys, Objects: &tables.Stream[tables.Object]{}, MaxTotal: 1 << 20})
	var open []interface{ End() }
	for range 200 {
		p := r.For(connection(443))
		open = append(open, p)
		for i, one := range pieces {
			if i != 40 { // a permanent hole
				p.Data(one.dir, one.offset, one.b, one.timeNS, one.subflow)
			}
			if r.Kept() > 1<<20 {
				t.Fatalf("%d bytes are kept", r.Kept())
			}
		}
	}
	for _, p := range open {
		p.End()
	}
	if r.Kept() != 0 {
		t.Errorf("%d bytes are kept after the end", r.Kept())
	}
}
