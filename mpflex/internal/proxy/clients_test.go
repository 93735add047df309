package proxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mplab/internal/testkit"
	"mplab/mpflex/config"
	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/forward/carrier"
	"mplab/mpflex/internal/transport/identity"
	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/status"
	"mplab/mpflex/wire"
)

var transports = []string{config.TCP, config.MPFlex, config.MPFlexPlain}

// TestNamedClients: the client's open connections and its log records have its name,
// with every transport.
func TestNamedClients(t *testing.T) {
	for _, transport := range transports {
		t.Run(transport, func(t *testing.T) {
			echo := testkit.Echo(t)
			p := start(t, nil, "alice", "bob")
			source := p.Status()
			for _, name := range []string{"alice", "bob"} {
				conn, err := open(p.dialer(t, secretOf(name), transport), echo)
				if err != nil {
					t.Fatal(err)
				}
				if err := echoed(conn, 10_000); err != nil {
					t.Fatal(err)
				}
				report := source.Streams()
				if transport == config.TCP {
					if len(report.OwnConnections) != 1 || report.OwnConnections[0].Client != name {
						t.Errorf("%s: %+v", name, report.OwnConnections)
					}
				} else if n := len(report.Sessions); n == 0 || report.Sessions[n-1].Client != name || len(report.Sessions[n-1].Each) != 1 {
					t.Errorf("%s: %+v", name, report.Sessions)
				}
				_ = conn.CloseWrite()
				_, _ = io.Copy(io.Discard, conn)
				_ = conn.Close()
				testkit.Eventually(t, "the record of "+name, func() bool {
					all := records[connlog.Connection](t, p, "connection")
					return len(all) > 0 && all[len(all)-1].Client == name && all[len(all)-1].BytesUp == 10_000
				})
				if transport == config.TCP {
					continue
				}
				if all := records[connlog.PathEvent](t, p, "path"); all[len(all)-1].Client != name {
					t.Errorf("%+v", all)
				}
			}
			if err := exchange(&carrier.Dialer{Proxy: p.Listening(config.TCP), Secret: secretOf("eve")}, echo, 1); err == nil {
				t.Error("a stranger was served")
			}
		})
	}
}

// introduce sends an attach over a connection of a client.
func (r running) introduce(transport string, client, signedBy []byte, a *wire.Attach) (net.Conn, wire.Binding, error) {
	conn, err := net.Dial("tcp", r.Listening(transport).String())
	if err != nil {
		return nil, wire.Unbound, err
	}
	_ = conn.SetDeadline(time.Now().Add(testkit.Patience))
	binding := wire.Unbound
	if transport == config.MPFlex {
		agent, err := identity.NewAgent(client, identity.Options{})
		if err != nil {
			return conn, binding, err
		}
		secure, err := agent.Handshake(context.Background(), conn)
		if err != nil {
			return conn, binding, err
		}
		conn, binding = secure, secure.Binding
	}
	a.Stamp()
	a.Incarnation = max(a.Incarnation, 1)
	if a.Settings.MaxStreams == 0 {
		a.Settings = wire.Settings{MaxStreams: 10, InitialWindow: 65536}
	}
	message, err := a.Append(nil, signedBy, binding)
	if err == nil {
		_, err = conn.Write(message)
	}
	return conn, binding, err
}

// attach returns the answer to an attach over a connection of a client.
func (r running) attach(t *testing.T, transport string, client, signedBy []byte, a wire.Attach) (wire.Status, error) {
	t.Helper()
	conn, binding, err := r.introduce(transport, client, signedBy, &a)
	if conn != nil {
		t.Cleanup(func() { _ = conn.Close() })
	}
	if err != nil {
		return 0, err
	}
	answer, err := wire.ReadAttached(conn, signedBy, binding, a.Nonce)
	return answer.Status, err
}

// TestPathOfAnotherClient: a client that knows the number of another client's session
// has no access to it, with TLS or without.
func TestPathOfAnotherClient(t *testing.T) {
	for _, transport := range []string{config.MPFlex, config.MPFlexPlain} {
		t.Run(transport, func(t *testing.T) {
			echo := testkit.Echo(t)
			p := start(t, nil, "alice", "bob")
			up := p.uplink(t, secretOf("alice"), transport, session.Config{})
			alice := &carrier.Dialer{Streams: up}
			conn, err := open(alice, echo)
			if err != nil {
				t.Fatal(err)
			}
			id := up.ID()
			bob := secretOf("bob")
			if got, err := p.attach(t, transport, bob, bob, wire.Attach{Session: id, Path: 1}); err != nil || got != wire.UnknownSession {
				t.Errorf("bob asks for alice's session: %s, %v", got, err)
			}
			// The same number, but bob's own session.
			if got, err := p.attach(t, transport, bob, bob, wire.Attach{Session: id, Fresh: true, Incarnation: 9}); err != nil || got != wire.OK {
				t.Errorf("bob begins a session: %s, %v", got, err)
			}
			source, sessions := p.Status(), []status.Session{}
			testkit.Eventually(t, "bob's path", func() bool { // the answer arrives before the path is in the status
				sessions = source.Status().Sessions
				return len(sessions) == 2 && len(sessions[1].Paths) == 1
			})
			if sessions[0].Client != "alice" || sessions[1].Client != "bob" || sessions[0].ID != sessions[1].ID {
				t.Fatalf("%+v", sessions)
			}
			if a, b := sessions[0], sessions[1]; len(a.Paths) != 1 || a.Paths[0].Incarnation != 1 || a.Streams != 1 || len(b.Paths) != 1 || b.Paths[0].Incarnation != 9 || b.Streams != 0 {
				t.Errorf("%+v", sessions)
			}
			if transport == config.MPFlex { // bob's connection, alice's message
				if got, err := p.attach(t, transport, bob, secretOf("alice"), wire.Attach{Session: id, Path: 2}); err == nil {
					t.Errorf("the message of another client: %s", got)
				}
			}
			if err := echoed(conn, 100_000); err != nil {
				t.Errorf("alice's stream: %v", err)
			}
		})
	}
}

// TestReload: on SIGHUP, added clients are accepted, connections of clients that were
// removed or have another secret end at once, and the others are not affected.
func TestReload(t *testing.T) {
	for _, transport := range transports {
		t.Run(transport, func(t *testing.T) {
			echo := testkit.Echo(t)
			p := start(t, nil, "alice", "bob", "carol")
			conns := map[string]*carrier.Conn{}
			for _, name := range []string{"alice", "bob", "carol"} {
				conn, err := open(p.dialer(t, secretOf(name), transport), echo)
				if err != nil {
					t.Fatal(err)
				}
				conns[name] = conn
			}
			p.add(t, "bob", secretOf("another"))
			p.add(t, "dave", secretOf("dave"))
			if err := os.Remove(filepath.Join(p.clients, "carol")); err != nil {
				t.Fatal(err)
			}
			hangUp(t, p, 1)
			for _, name := range []string{"bob", "carol"} {
				_ = conns[name].SetReadDeadline(time.Now().Add(testkit.Patience))
				if _, err := conns[name].Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if err := echoed(conns["alice"], 100_000); err != nil {
				t.Errorf("alice: %v", err)
			}
			if err := exchange(p.dialer(t, secretOf("dave"), transport), echo, 1000); err != nil {
				t.Errorf("dave: %v", err)
			}
			if err := exchange(p.dialer(t, secretOf("another"), transport), echo, 1000); err != nil {
				t.Errorf("bob with his new secret: %v", err)
			}
			if err := exchange(&carrier.Dialer{Proxy: p.Listening(config.TCP), Secret: secretOf("carol")}, echo, 1); err == nil {
				t.Error("carol is still served")
			}
			why := func() (ended []string) {
				if transport == config.TCP {
					for _, r := range records[connlog.Connection](t, p, "connection") {
						if strings.Contains(r.Error, "the client was removed") {
							ended = append(ended, r.Client)
						}
					}
				}
				for _, r := range records[connlog.SessionEnd](t, p, "session") {
					if strings.Contains(r.Error, "the client was removed") {
						ended = append(ended, r.Client)
					}
				}
				slices.Sort(ended)
				return ended
			}
			testkit.Eventually(t, "the reasons", func() bool { return slices.Equal(why(), []string{"bob", "carol"}) })
			got := records[connlog.Clients](t, p, "clients")[1]
			if !slices.Equal(got.Added, []string{"dave"}) || !slices.Equal(got.Removed, []string{"carol"}) || !slices.Equal(got.Changed, []string{"bob"}) || got.Clients != 3 {
				t.Errorf("%+v", got)
			}

			// A bad client changes nothing.
			p.add(t, "eve", []byte("short"))
			hangUp(t, p, 2)
			if got := records[connlog.Clients](t, p, "clients")[2]; got.Clients != 3 || !strings.Contains(got.Error, "eve holds 5 bytes") {
				t.Errorf("%+v", got)
			}
			if err := echoed(conns["alice"], 1000); err != nil {
				t.Errorf("alice: %v", err)
			}
		})
	}
}

// hangUp sends the proxy, which is this process, a SIGHUP and waits for the nth record
// of the clients.
func hangUp(t *testing.T, p running, nth int) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the record of the clients", func() bool {
		return len(records[connlog.Clients](t, p, "clients")) == nth+1
	})
}

// TestClientWithoutMeasure: a client with a valid secret opens connections, sessions,
// paths and streams without end. It gets no more than its limits, and the bytes of
// another client's connection stay right.
func TestClientWithoutMeasure(t *testing.T) {
	const connections, sessions, streams = 24, 4, 30
	echo := testkit.Echo(t)
	p := start(t, func(c *config.Proxy) {
		c.MaxConnections = 120
		c.PerClient = config.ProxyPerClient{Connections: connections, Sessions: sessions, Streams: streams}
	}, "alice", "eve")
	ctx, cancel := context.WithCancel(context.Background())
	var opened, reset atomic.Int64
	var held hoard
	defer held.close()
	var flood sync.WaitGroup
	defer flood.Wait()
	defer cancel()
	eve := secretOf("eve")
	rounds := func(f func(i int)) {
		flood.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				f(i)
				opened.Add(1)
				time.Sleep(3 * time.Millisecond)
			}
		})
	}
	var streaming [2]*carrier.Dialer // each obeys the proxy's limit, both together exceed it
	for i := range streaming {
		streaming[i] = &carrier.Dialer{Streams: p.uplink(t, eve, config.MPFlexPlain, session.Config{})}
		if _, err := open(streaming[i], echo); err != nil { // while there is room for its path
			t.Fatal(err)
		}
	}
	tcp := p.dialer(t, eve, config.TCP)
	rounds(func(int) {
		if conn, err := tcp.Open(ctx, carrier.Request{Command: wire.Connect, Destination: echo}); err == nil {
			held.keep(conn)
		}
	})
	for _, transport := range []string{config.MPFlex, config.MPFlexPlain} {
		rounds(func(i int) { // paths of some sessions, which are not read
			conn, _, _ := p.introduce(transport, eve, eve, &wire.Attach{
				Session: wire.SessionID{byte(i % 7)}, Path: byte(i % wire.MaxPaths), Fresh: true, Incarnation: uint32(i + 1),
			})
			held.keep(conn)
		})
	}
	rounds(func(i int) {
		conn, err := streaming[i%len(streaming)].Open(ctx, carrier.Request{Command: wire.Connect, Destination: echo})
		if err != nil {
			return
		}
		flood.Go(func() {
			stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
			defer stop()
			var gone *session.ResetError
			if _, err := io.Copy(io.Discard, conn); errors.As(err, &gone) && gone.Reason == session.TooMany {
				reset.Add(1)
			}
			_ = conn.SetLinger(0)
			_ = conn.Close()
		})
	})

	source := p.Status()
	// beyond returns the limits that the client exceeds.
	beyond := func() string {
		report, paths, open, held := source.Streams(), 0, 0, 0
		for _, s := range report.Sessions {
			if s.Client == "eve" {
				held++
				paths += len(s.Paths)
			}
		}
		for _, c := range report.OwnConnections {
			if c.Client == "eve" {
				open++
			}
		}
		if held > sessions || open+paths > connections+16 {
			return "eve has too much"
		}
		return ""
	}
	var honest sync.WaitGroup
	for _, transport := range transports {
		alice := p.dialer(t, secretOf("alice"), transport)
		honest.Go(func() {
			for i := range 30 {
				if err := exchange(alice, echo, 50_000+1000*i); err != nil {
					t.Errorf("alice, %s, connection %d: %v", transport, i, err)
					return
				}
				if what := beyond(); what != "" {
					t.Error(what)
				}
			}
		})
	}
	honest.Wait()
	testkit.Eventually(t, "more asked for than may be had", func() bool { return opened.Load() > 4*connections && reset.Load() > 0 })
	for _, limit := range []string{"of 24 connections", "of 30 streams"} { // the log has up to ten refusals per second
		testkit.Eventually(t, "the log says that the limit "+limit+" is reached", func() bool {
			return slices.ContainsFunc(records[connlog.Refusal](t, p, "refused"), func(r connlog.Refusal) bool {
				return strings.Contains(r.Reason, limit) && r.Client == "eve" && r.Remote.Addr().IsLoopback()
			})
		})
	}
}

// hoard holds connections open.
type hoard struct {
	mu    sync.Mutex
	conns []net.Conn
}

func (h *hoard) keep(conn net.Conn) {
	if conn == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns = append(h.conns, conn)
}

func (h *hoard) close() {
	for _, conn := range h.conns {
		_ = conn.Close()
	}
}

// TestWideRulesLeaveTheProxy: wide rules do not permit the proxy's own machine, with a
// separate connection or a stream.
func TestWideRulesLeaveTheProxy(t *testing.T) {
	echo := testkit.Echo(t)
	allowed, err := config.ParseAllow([]string{"0.0.0.0/0:*", "[::/0]:*"})
	if err != nil {
		t.Fatal(err)
	}
	for _, transport := range transports {
		p := start(t, func(c *config.Proxy) { c.Allowed = allowed }, "alice")
		d := p.dialer(t, secretOf("alice"), transport)
		for _, host := range []string{"127.0.0.1", "0.0.0.0", "::", "::ffff:127.0.0.1", "169.254.169.254", "224.0.0.1"} {
			_, err := open(d, netip.AddrPortFrom(netip.MustParseAddr(host), echo.Port()))
			var answer *carrier.StatusError
			if !errors.As(err, &answer) || answer.Status != wire.Denied {
				t.Errorf("%s, %s: %v", transport, host, err)
			}
		}
	}
}

// TestOwnListenerIsNoDestination: a session does not lead back to the proxy.
func TestOwnListenerIsNoDestination(t *testing.T) {
	p := start(t, nil, "alice") // it permits all loopback addresses
	_, err := open(p.dialer(t, secretOf("alice"), config.MPFlex), p.Listening(config.TCP))
	var answer *carrier.StatusError
	if !errors.As(err, &answer) || answer.Status != wire.Denied {
		t.Error(err)
	}
}

// TestRefusalsNameTheClient: refused streams beyond a limit and refused paths are
// logged with the client's name and address.
func TestRefusalsNameTheClient(t *testing.T) {
	echo := testkit.Echo(t)
	p := start(t, func(c *config.Proxy) { c.PerClient.Streams = 1 }, "alice", "bob")
	for range 2 { // sessions: a single one obeys the proxy's limit
		_, _ = open(p.dialer(t, secretOf("alice"), config.MPFlex), echo)
	}
	if status, err := p.attach(t, config.MPFlex, secretOf("bob"), secretOf("bob"), wire.Attach{Session: wire.SessionID{1}}); err != nil || status != wire.UnknownSession {
		t.Fatal(status, err)
	}
	for client, reason := range map[string]string{"alice": "the client's limit of 1 streams is reached", "bob": wire.UnknownSession.String()} {
		testkit.Eventually(t, "the refusal of "+client, func() bool {
			return slices.ContainsFunc(records[connlog.Refusal](t, p, "refused"), func(r connlog.Refusal) bool {
				return strings.Contains(r.Reason, reason) && r.Client == client && r.Remote.Addr().IsLoopback() && r.Remote.Port() != 0
			})
		})
	}
}
