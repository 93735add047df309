package identity

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mplab/mpflex/wire"
)

func TestAnotherSecret(t *testing.T) {
	refuse(t, newAgent(t, secretC), newProxy(t, Options{}, alice, bob), ErrSilent, ErrStranger)
	refuse(t, newAgent(t, secretA), newProxy(t, Options{}), ErrSilent, ErrStranger)
}

// TestClocks checks that clocks do not matter. A server name is accepted once, with any
// time.
func TestClocks(t *testing.T) {
	proxy := newProxy(t, Options{}, alice)
	for _, off := range []time.Duration{0, time.Hour, -time.Hour, 50 * 365 * 24 * time.Hour, -50 * 365 * 24 * time.Hour} {
		config := newAgent(t, secretA).config(time.Now().Add(off))
		for _, want := range []error{nil, wire.ErrReplay} {
			client, server := tcpPair(t)
			done := serve(proxy, server)
			err := tls.Client(client, config).Handshake()
			got := <-done
			if !errors.Is(got.err, want) || (err == nil) != (want == nil) {
				t.Errorf("off by %v: %v at the proxy, %v at the agent", off, got.err, err)
			}
			if want != nil && !strings.Contains(got.err.Error(), `client "alice"`) {
				t.Errorf("the log would not say who: %v", got.err)
			}
		}
	}
}

func certificateOf(t *testing.T, key ed25519.PrivateKey) tls.Certificate {
	t.Helper()
	certificate, err := certify(key)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func keysOf(t *testing.T, secret []byte) keys {
	t.Helper()
	keys, err := derive(secret)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func ecdsaCertificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// chain returns a certificate followed by another one.
func chain(a, b tls.Certificate) tls.Certificate {
	a.Certificate = slices.Concat(a.Certificate, b.Certificate)
	return a
}

// TestProxyRefuses has clients with a valid server name that fail another check.
func TestProxyRefuses(t *testing.T) {
	a, b := keysOf(t, secretA), keysOf(t, secretB)
	own := certificateOf(t, a.agent)
	cases := map[string]struct {
		change func(*tls.Config)
		want   string
	}{
		"another client's key":    {func(c *tls.Config) { c.Certificates[0] = certificateOf(t, b.agent) }, ErrPeer.Error()},
		"the proxy's key":         {func(c *tls.Config) { c.Certificates[0] = certificateOf(t, a.proxy) }, ErrPeer.Error()},
		"a key of another kind":   {func(c *tls.Config) { c.Certificates[0] = ecdsaCertificate(t) }, ErrPeer.Error()},
		"two certificates":        {func(c *tls.Config) { c.Certificates[0] = chain(own, certificateOf(t, b.agent)) }, "2 certificates"},
		"two, its own at the end": {func(c *tls.Config) { c.Certificates[0] = chain(certificateOf(t, b.agent), own) }, "2 certificates"},
		"no certificate":          {func(c *tls.Config) { c.Certificates = nil }, "client didn't provide a certificate"},
		"its certificate, not its key": {func(c *tls.Config) {
			c.Certificates[0] = tls.Certificate{Certificate: own.Certificate, PrivateKey: b.agent}
		}, "invalid signature by the client certificate"},
		"TLS 1.2":          {func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12 }, "unsupported versions"},
		"another protocol": {func(c *tls.Config) { c.NextProtos = []string{"h2"} }, "unsupported application protocols"},
		"no protocol":      {func(c *tls.Config) { c.NextProtos = nil }, `speaks ""`},
		"another curve":    {func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.CurveP384} }, "no key exchanges supported by both client and server"},
		"no name":          {func(c *tls.Config) { c.ServerName = "" }, ErrStranger.Error()},
		"a name":           {func(c *tls.Config) { c.ServerName = "proxy.example.org" }, ErrStranger.Error()},
		"another's name":   {func(c *tls.Config) { c.ServerName = sealName(b.naming, time.Now()) }, ErrPeer.Error()},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			client, server := tcpPair(t)
			done := serve(newProxy(t, Options{}, alice, bob), server)
			config := newAgent(t, secretA).config(time.Now())
			config.VerifyConnection = nil // this client accepts any proxy
			c.change(config)
			conn := tls.Client(client, config)
			_ = conn.Handshake()
			got := <-done
			if got.err == nil || !strings.Contains(got.err.Error(), c.want) {
				t.Errorf("got %v, want %s", got.err, c.want)
			}
			_ = server.Close()
			if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Errorf("the client read %d bytes, %v", n, err)
			}
		})
	}
	client, server := tcpPair(t)
	done := serve(newProxy(t, Options{}, alice, bob), server)
	config := newAgent(t, secretA).config(time.Now())
	config.VerifyConnection = nil
	if err := tls.Client(client, config).Handshake(); err != nil {
		t.Errorf("with nothing changed: %v", err)
	}
	if got := <-done; got.err != nil {
		t.Errorf("with nothing changed: %v", got.err)
	}
}

// TestAgentRefuses has servers that know the client and fail another check.
func TestAgentRefuses(t *testing.T) {
	a, b := keysOf(t, secretA), keysOf(t, secretB)
	cases := map[string]struct {
		change func(*tls.Config)
		want   string
	}{
		"another secret's key":  {func(c *tls.Config) { c.Certificates[0] = certificateOf(t, b.proxy) }, ErrPeer.Error()},
		"the agent's own key":   {func(c *tls.Config) { c.Certificates[0] = certificateOf(t, a.agent) }, ErrPeer.Error()},
		"a key of another kind": {func(c *tls.Config) { c.Certificates[0] = ecdsaCertificate(t) }, ErrPeer.Error()},
		"two certificates":      {func(c *tls.Config) { c.Certificates[0] = chain(c.Certificates[0], certificateOf(t, b.proxy)) }, "2 certificates"},
		"its certificate, not its key": {func(c *tls.Config) {
			c.Certificates[0] = tls.Certificate{Certificate: c.Certificates[0].Certificate, PrivateKey: b.proxy}
		}, "invalid signature by the server certificate"},
		"TLS 1.2":          {func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12 }, "protocol version not supported"},
		"another protocol": {func(c *tls.Config) { c.NextProtos = []string{"h2"} }, "no application protocol"},
		"no protocol":      {func(c *tls.Config) { c.NextProtos = nil }, `speaks ""`},
		"another curve":    {func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.CurveP384} }, "handshake failure"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			client, server := tcpPair(t)
			config := base(Options{}, certificateOf(t, a.proxy), nil)
			config.VerifyConnection, config.ClientAuth = nil, tls.RequestClientCert // this server accepts any agent
			c.change(config)
			go func() {
				conn := tls.Server(server, config)
				_ = conn.Handshake()
				_, _ = io.Copy(io.Discard, conn)
				_ = conn.Close()
			}()
			if _, err := newAgent(t, secretA).Handshake(t.Context(), client); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	t.Run("nothing changed", func(t *testing.T) {
		client, server := tcpPair(t)
		config := base(Options{}, certificateOf(t, a.proxy), nil)
		config.VerifyConnection, config.ClientAuth = nil, tls.RequestClientCert
		go func() { _ = tls.Server(server, config).Handshake() }()
		if _, err := newAgent(t, secretA).Handshake(t.Context(), client); err != nil {
			t.Error(err)
		}
	})
}

// TestNothingIsResumed checks that the proxy issues no session tickets, so each
// connection proves both identities.
func TestNothingIsResumed(t *testing.T) {
	proxy := newProxy(t, Options{}, alice)
	cache := &countingCache{ClientSessionCache: tls.NewLRUClientSessionCache(8)}
	for range 3 {
		client, server := tcpPair(t)
		done := serve(proxy, server)
		config := newAgent(t, secretA).config(time.Now())
		config.ClientSessionCache, config.SessionTicketsDisabled = cache, false
		conn := tls.Client(client, config)
		if err := conn.Handshake(); err != nil {
			t.Fatal(err)
		}
		got := <-done
		if got.err != nil || got.conn.ConnectionState().DidResume {
			t.Fatalf("%+v", got)
		}
		_, _ = got.conn.Write([]byte("x"))
		if _, err := conn.Read(make([]byte, 1)); err != nil { // a ticket would arrive before this byte
			t.Fatal(err)
		}
	}
	if cache.asked != 3 || cache.put != 0 {
		t.Errorf("%d tickets in %d handshakes", cache.put, cache.asked)
	}
}

type countingCache struct {
	tls.ClientSessionCache
	asked, put int
}

func (c *countingCache) Get(key string) (*tls.ClientSessionState, bool) {
	c.asked++
	return c.ClientSessionCache.Get("any") // the names differ in each connection
}

func (c *countingCache) Put(_ string, state *tls.ClientSessionState) {
	if state != nil {
		c.put++
	}
	c.ClientSessionCache.Put("any", state)
}

// recordingConn records the bytes written to it.
type recordingConn struct {
	net.Conn
	mu   sync.Mutex
	sent []byte
}

func (c *recordingConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	c.sent = append(c.sent, b...)
	c.mu.Unlock()
	return c.Conn.Write(b)
}

func TestRecordedHandshakeIsRefused(t *testing.T) {
	proxy := newProxy(t, Options{}, alice)
	client, server := tcpPair(t)
	done := serve(proxy, server)
	recording := &recordingConn{Conn: client}
	conn, err := newAgent(t, secretA).Handshake(t.Context(), recording)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("pay a hundred")); err != nil {
		t.Fatal(err)
	}
	if got := <-done; got.err != nil {
		t.Fatal(got.err)
	}
	replay := func(proxy *Proxy) (answer []byte, err error) {
		client, server := tcpPair(t)
		done := serve(proxy, server)
		if _, err := client.Write(recording.sent); err != nil {
			t.Fatal(err)
		}
		answer, _ = io.ReadAll(client) // the proxy may reset the connection
		got := <-done
		if got.conn != nil {
			t.Error("the replayed handshake was taken")
		}
		return answer, got.err
	}
	if answer, err := replay(proxy); !errors.Is(err, wire.ErrReplay) || len(answer) != 0 {
		t.Errorf("%v after %d bytes", err, len(answer))
	}
	// A proxy that has forgotten the name uses another key share, so it cannot decrypt
	// the rest of the recording.
	if _, err := replay(newProxy(t, Options{}, alice)); err == nil || !strings.Contains(err.Error(), "bad record MAC") {
		t.Errorf("after a restart: %v", err)
	}
}

// TestOthersGetNoByte checks that a peer that does not use TLS, or sends more than a
// handshake has, gets no byte.
func TestOthersGetNoByte(t *testing.T) {
	hello := wire.NewHello(wire.Connect, netip.AddrPort{}, netip.MustParseAddrPort("192.0.2.1:80")).Append(nil, secretA)
	attach := wire.Attach{Fresh: true, Settings: wire.Settings{MaxStreams: 1, InitialWindow: wire.MinWindow}}
	attach.Stamp()
	plain, err := attach.Append(nil, secretA, wire.Unbound)
	if err != nil {
		t.Fatal(err)
	}
	endless := bytes.Repeat(append([]byte{22, 3, 1, 0x20, 0, 1, 0, 0xf0, 0}, make([]byte, 0x2000-4)...), 8)
	for name, c := range map[string]struct {
		sent []byte
		want string
	}{
		"a hello":                        {hello, "does not look like a TLS handshake"},
		"an attach":                      {plain, "does not look like a TLS handshake"},
		"HTTP":                           {[]byte("GET / HTTP/1.1\r\nHost: proxy\r\n\r\n"), "does not look like a TLS handshake"},
		"a ClientHello without end":      {endless, errTalkative.Error()},
		"an alert":                       {[]byte{21, 3, 1, 0, 2, 2, 40}, "handshake failure"},
		"application data":               {[]byte{23, 3, 3, 0, 1, 0}, "does not look like a TLS handshake"},
		"a ServerHello":                  {[]byte{22, 3, 3, 0, 4, 2, 0, 0, 0}, "error decoding message"},
		"an empty ClientHello":           {[]byte{22, 3, 1, 0, 4, 1, 0, 0, 0}, "error decoding message"},
		"the end before the ClientHello": {nil, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := tcpPair(t)
			done := serve(newProxy(t, Options{}, alice), server)
			_, _ = client.Write(c.sent)
			_ = client.(*net.TCPConn).CloseWrite()
			answer, _ := io.ReadAll(client) // the proxy may reset the connection
			got := <-done
			if len(answer) != 0 || got.err == nil || !strings.Contains(got.err.Error(), c.want) {
				t.Errorf("answer %x, %v", answer, got.err)
			}
		})
	}
}
