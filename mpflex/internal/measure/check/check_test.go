package check

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mplab/internal/testkit"
	"mplab/mpflex/config"
	"mplab/mpflex/internal/agent"
	"mplab/mpflex/internal/transport/downlink"
	"mplab/mpflex/internal/transport/identity"
	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/wire"
)

var secret = bytes.Repeat([]byte{'c'}, identity.MinSecret)

// plain returns the configuration of an agent over TCP whose proxy serves hellos.
func plain(t *testing.T, serve func(*net.TCPConn, wire.Hello)) config.Agent {
	t.Helper()
	proxy := testkit.Serve(t, func(conn *net.TCPConn) {
		hello, _, err := wire.ReadHello(conn, secret)
		if err != nil {
			t.Errorf("the proxy got %v", err)
			return
		}
		serve(conn, hello)
	})
	return config.Agent{Transport: config.TCP, Proxy: config.Address{AddrPort: proxy}, Secret: secret}
}

// echo answers OK and echoes.
func echo(conn *net.TCPConn, hello wire.Hello) {
	_, _ = conn.Write(wire.OK.Append(nil, secret, hello.Nonce))
	_, _ = io.Copy(conn, conn)
}

func checked(t *testing.T, c config.Agent, o Options) Result {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = testkit.Patience
	}
	return Run(t.Context(), c, agent.NewDialer(c), o)
}

func TestEcho(t *testing.T) {
	got := checked(t, plain(t, echo), Options{WaitSubflows: 1})
	if !got.OK || got.Error != "" || got.Transport != config.TCP || got.Subflows != 1 || got.Multipath || got.RTTms <= 0 || got.CongestionControl == "" ||
		len(got.Local) != 1 || got.Local[0] != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("%+v", got)
	}
}

// TestTarget: with a target, the proxy must connect to it, and no bytes are exchanged.
func TestTarget(t *testing.T) {
	target := netip.MustParseAddrPort("192.0.2.1:80")
	var received atomic.Int64
	received.Store(-1)
	c := plain(t, func(conn *net.TCPConn, hello wire.Hello) {
		if hello.Command != wire.Connect || hello.Destination != target {
			t.Errorf("%+v", hello)
		}
		_, _ = conn.Write(wire.OK.Append(nil, secret, hello.Nonce))
		n, _ := io.Copy(io.Discard, conn)
		received.Store(n)
	})
	if got := checked(t, c, Options{Target: target}); !got.OK {
		t.Errorf("%+v", got)
	}
	testkit.Eventually(t, "the end of the connection without bytes", func() bool { return received.Load() == 0 })
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name  string
		serve func(*net.TCPConn, wire.Hello)
		o     Options
		want  string
	}{
		{"another echo", func(conn *net.TCPConn, hello wire.Hello) {
			_, _ = conn.Write(wire.OK.Append(nil, secret, hello.Nonce))
			all := make([]byte, exchangeSize)
			_, _ = io.ReadFull(conn, all)
			all[len(all)-1]++
			_, _ = conn.Write(all)
		}, Options{}, "the echo differs from what was sent"},
		{"half an echo", func(conn *net.TCPConn, hello wire.Hello) {
			_, _ = conn.Write(wire.OK.Append(nil, secret, hello.Nonce))
			_, _ = io.CopyN(conn, conn, exchangeSize/2)
			_, _ = io.CopyN(io.Discard, conn, exchangeSize/2)
		}, Options{}, "the exchange was interrupted: unexpected EOF"},
		{"denied", func(conn *net.TCPConn, hello wire.Hello) {
			_, _ = conn.Write(wire.Denied.Append(nil, secret, hello.Nonce))
			_, _ = io.Copy(io.Discard, conn)
		}, Options{}, wire.Denied.String()},
		{"silent", func(conn *net.TCPConn, _ wire.Hello) { _, _ = io.Copy(io.Discard, conn) },
			Options{Timeout: 50 * time.Millisecond}, "no answer within 50ms"},
		{"one subflow", echo, Options{WaitSubflows: 2}, "2 subflows are requested; the connection is plain TCP and has one"},
	} {
		got := checked(t, plain(t, c.serve), c.o)
		if got.OK || got.Error != c.want || got.Local == nil {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// TestClocksDiffer: the check is repeated with the proxy's time, once.
func TestClocksDiffer(t *testing.T) {
	for _, adapts := range []bool{true, false} {
		var asked atomic.Int64
		c := plain(t, func(conn *net.TCPConn, hello wire.Hello) {
			if asked.Add(1) == 1 || !adapts {
				_, _ = conn.Write(wire.AppendSkewed(nil, secret, hello.Nonce, hello.Time.Add(-time.Hour)))
				return
			}
			echo(conn, hello)
		})
		got := checked(t, c, Options{})
		if got.OK != adapts || asked.Load() != 2 || !adapts && !strings.Contains(got.Error, "clock") {
			t.Errorf("the clock is adapted %t: %d connections, %+v", adapts, asked.Load(), got)
		}
	}
}

// sessions returns the configuration of an agent with a session over loopback. The proxy
// has the given secret and answers each stream with the status, then echoes.
func sessions(t *testing.T, known []byte, status wire.Status) config.Agent {
	t.Helper()
	id, err := identity.NewProxy([]identity.Credential{{Secret: known}}, identity.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := downlink.New(downlink.Options{Identity: id, Serve: func(_ context.Context, _ identity.Client, st *session.Stream) {
		defer st.Close() //nolint:errcheck // nothing is left to lose
		open, err := wire.ReadOpen(st)
		if err != nil || open.Command != wire.Echo {
			t.Errorf("%+v, %v", open, err)
		}
		_, _ = st.Write([]byte{byte(status)})
		_, _ = io.Copy(st, st)
	}})
	proxy := testkit.Serve(t, func(conn *net.TCPConn) { _ = server.Take(context.Background(), conn, true) })
	t.Cleanup(server.Close)
	return config.Agent{
		Transport: config.MPFlex, Proxy: config.Address{AddrPort: proxy}, Secret: secret, Paths: []config.AgentPath{{Device: "lo"}, {Device: "nosuch0"}},
	}
}

func TestSession(t *testing.T) {
	got := RunSession(t.Context(), sessions(t, secret, wire.OK), Options{WaitSubflows: 1, Timeout: testkit.Patience})
	if !got.OK || got.Subflows != 1 || len(got.Paths) != 1 || got.Paths[0] != "lo" || got.Plain || got.CongestionControl == "" || got.RTTms <= 0 ||
		len(got.Local) != 1 || got.Local[0] != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("%+v", got)
	}
}

func TestSessionFailures(t *testing.T) {
	for _, c := range []struct {
		name   string
		known  []byte
		status wire.Status
		o      Options
		want   string
	}{
		{"denied", secret, wire.Denied, Options{}, wire.Denied.String()},
		{"more paths than configured", secret, wire.OK, Options{WaitSubflows: 3}, "3 paths are requested; the configuration has 2"},
		{"a device without network", secret, wire.OK, Options{WaitSubflows: 2, Timeout: time.Second}, "1 of 2 paths after 1s (nosuch0: "},
		{"another secret", bytes.Repeat([]byte{'x'}, identity.MinSecret), wire.OK, Options{WaitSubflows: 1, Timeout: time.Second}, "0 of 1 paths after 1s (lo: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.o.Timeout == 0 {
				c.o.Timeout = testkit.Patience
			}
			got := RunSession(t.Context(), sessions(t, c.known, c.status), c.o)
			if got.OK || !strings.HasPrefix(got.Error, c.want) || strings.Contains(got.Error, "no answer)") {
				t.Errorf("%+v", got)
			}
		})
	}
}
