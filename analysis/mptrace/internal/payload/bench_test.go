package payload_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mplab/analysis/mptrace/internal/fixture"
	"mplab/analysis/mptrace/internal/payload"
	"mplab/analysis/mptrace/internal/payload/tlskeys"
	"mplab/analysis/mptrace/tables"
)

// BenchmarkObjects decrypts a page of 20 MB over HTTP/2.
func BenchmarkObjects(b *testing.B) {
	var keys strings.Builder
	server := httptest.NewUnstartedServer(http.HandlerFunc(answer))
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{Certificates: certificates(), MinVersion: tls.VersionTLS13}
	server.StartTLS()
	defer server.Close()
	n := &notes{}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, KeyLogWriter: &keys, MinVersion: tls.VersionTLS13}, // #nosec G402
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return n.open(ctx, server.Listener.Addr().String())
		},
		ForceAttemptHTTP2: true,
	}}
	for range 20 {
		r, err := client.Get("https://web.example/200/1000000")
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	client.CloseIdleConnections()
	log, err := tlskeys.Open(fixture.File(b, keys.String()))
	if err != nil {
		b.Fatal(err)
	}
	pieces := cut(pick(1), n.all(), inOrder)
	b.SetBytes(20_000_000)
	b.ReportAllocs()
	for b.Loop() {
		objects := &tables.Stream[tables.Object]{}
		r := payload.New(payload.Options{Keys: log, Objects: objects})
		p := r.For(connection(443))
		for _, one := range pieces {
			p.Data(one.dir, one.offset, one.b, one.timeNS, one.subflow)
		}
		p.End()
		if len(objects.Rows()) != 20 {
			b.Fatalf("%d objects", len(objects.Rows()))
		}
	}
}
