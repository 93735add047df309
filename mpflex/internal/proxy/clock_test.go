package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mplab/internal/jsonlog"
	"mplab/mpflex/config"
	"mplab/mpflex/internal/transport/identity"
	"mplab/mpflex/wire"
)

// TestClocks: an agent whose hello is an hour off gets the proxy's time, and is served
// when the next hello has that time. The log has the difference. A peer without the
// secret gets no answer.
func TestClocks(t *testing.T) {
	const limit = 10
	secret := []byte("sixteen byte key")
	logFile := filepath.Join(t.TempDir(), "log")
	log, err := jsonlog.Open(logFile)
	if err != nil {
		t.Fatal(err)
	}
	c := config.Proxy{MaxConnections: limit, IdleTimeoutS: 60}
	c.Clients = []identity.Credential{{Secret: secret}}
	c.Listen.TCP.AddrPort = netip.MustParseAddrPort("127.0.0.1:0")
	p, err := New(c, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { p.Run(ctx) })
	ask := func(at time.Time, secret []byte) (net.Conn, error) {
		conn, err := net.Dial("tcp", p.Listening(config.TCP).String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		hello := wire.NewHello(wire.Echo, netip.AddrPort{}, netip.AddrPort{})
		hello.Time = at
		if _, err := conn.Write(append(hello.Append(nil, secret), "early"...)); err != nil {
			t.Fatal(err)
		}
		_, err = wire.ReadStatus(conn, secret, hello.Nonce)
		return conn, err
	}
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		var clock wire.Clock
		conn, err := ask(time.Now().Add(off), secret)
		var skew *wire.SkewError
		if !errors.As(err, &skew) {
			t.Fatalf("off by %v: %v", off, err)
		}
		if rest, err := io.ReadAll(conn); err != nil || len(rest) != 0 {
			t.Errorf("%d bytes more, %v", len(rest), err)
		}
		clock.Learn(skew)
		conn, err = ask(clock.Now(), secret)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, 5)); err != nil {
			t.Error(err)
		}
	}
	if _, err := ask(time.Now().Add(time.Hour), []byte("another byte key")); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("another secret: %v", err)
	}
	cancel()
	running.Wait()
	lines, err := os.ReadFile(logFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"the agent's is 1h0m0s ahead of this one", "the agent's is 1h0m0s behind this one"} {
		if n := strings.Count(string(lines), want); n != 1 {
			t.Errorf("%d lines say: %s\n%s", n, want, lines)
		}
	}
}
