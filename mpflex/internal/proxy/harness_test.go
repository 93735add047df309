package proxy_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"mplab/internal/jsonlog"
	"mplab/internal/testkit"
	"mplab/mpflex/config"
	"mplab/mpflex/internal/forward/carrier"
	"mplab/mpflex/internal/proxy"
	"mplab/mpflex/internal/transport/identity"
	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/internal/transport/uplink"
	"mplab/mpflex/wire"
)

var loopback = config.Address{AddrPort: netip.MustParseAddrPort("127.0.0.1:0")}

// secretOf returns the secret of a client of the tests.
func secretOf(name string) []byte { return []byte(strings.Repeat(name+" ", 32)) }

// running is a proxy with all its listeners on the loopback interface.
type running struct {
	*proxy.Proxy
	log     string
	clients string // directory of its clients
}

// start starts a proxy with these clients.
func start(t *testing.T, change func(*config.Proxy), clients ...string) running {
	t.Helper()
	directory := t.TempDir()
	r := running{log: filepath.Join(directory, "proxy.jsonl"), clients: filepath.Join(directory, "clients")}
	if err := os.Mkdir(r.clients, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range clients {
		r.add(t, name, secretOf(name))
	}
	allowed, err := config.ParseAllow([]string{"127.0.0.0/8:*"})
	if err != nil {
		t.Fatal(err)
	}
	c := config.Proxy{
		Listen:  config.ProxyListen{TCP: loopback, MPFlex: loopback, MPFlexPlain: loopback},
		Allowed: allowed, MaxConnections: 500, IdleTimeoutS: 60, ClientsDir: r.clients,
	}
	if c.Clients, err = c.ReadClients(); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&c)
	}
	log, err := jsonlog.Open(r.log)
	if err != nil {
		t.Fatal(err)
	}
	if r.Proxy, err = proxy.New(c, log); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { r.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		serving.Wait()
		_ = log.Close()
	})
	return r
}

// add writes the secret of a client into the directory.
func (r running) add(t *testing.T, name string, secret []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.clients, name), secret, 0o600); err != nil {
		t.Fatal(err)
	}
}

// dialer returns the dialer of a client for a transport of the proxy.
func (r running) dialer(t *testing.T, secret []byte, transport string) *carrier.Dialer {
	t.Helper()
	d := &carrier.Dialer{Proxy: r.Listening(transport), Secret: secret}
	if transport == config.TCP {
		return d
	}
	up := r.uplink(t, secret, transport, session.Config{})
	d.Streams = up
	return d
}

func (r running) uplink(t *testing.T, secret []byte, transport string, c session.Config) *uplink.Uplink {
	t.Helper()
	return connect(t, r.Listening(transport), secret, transport, c)
}

// connect runs the sessions of a client until the end of the test.
func connect(t *testing.T, address netip.AddrPort, secret []byte, transport string, c session.Config) *uplink.Uplink {
	t.Helper()
	o := uplink.Options{Proxy: address, Secret: secret, Paths: []uplink.Path{{}}, Session: c}
	if transport == config.MPFlex {
		var err error
		if o.Private, err = identity.NewAgent(secret, identity.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	up, err := uplink.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var keeping sync.WaitGroup
	keeping.Go(func() { up.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		keeping.Wait()
	})
	return up
}

// open opens a connection to a destination and waits until it is connected.
func open(d *carrier.Dialer, destination netip.AddrPort) (*carrier.Conn, error) {
	conn, err := d.Open(context.Background(), carrier.Request{Command: wire.Connect, Destination: destination})
	if err != nil {
		return nil, err
	}
	if err := conn.Answer(); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// exchange sends bytes to an echo server and checks the answer.
func exchange(d *carrier.Dialer, echo netip.AddrPort, size int) error {
	conn, err := open(d, echo)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing is left to lose
	return echoed(conn, size)
}

// echoed sends bytes and checks the returned ones.
func echoed(conn *carrier.Conn, size int) error {
	sent := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(size)}).Read(sent)
	go func() { _, _ = conn.Write(sent) }()
	got := make([]byte, size)
	if n, err := io.ReadFull(conn, got); err != nil {
		return err
	} else if !bytes.Equal(got, sent) {
		return io.ErrNoProgress
	} else if n != size {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// records reads the records of one event from the proxy's log.
func records[R any](t *testing.T, r running, event string) []R {
	t.Helper()
	return testkit.Records[R](t, r.log, event)
}
