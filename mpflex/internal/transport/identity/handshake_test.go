package identity

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mplab/mpflex/wire"
)

var (
	secretA = bytes.Repeat([]byte{'a'}, MinSecret)
	secretB = bytes.Repeat([]byte{'b'}, MinSecret)
	secretC = bytes.Repeat([]byte{'c'}, MinSecret)
)

func newAgent(t testing.TB, secret []byte) *Agent {
	t.Helper()
	agent, err := NewAgent(secret, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return agent
}

func newProxy(t testing.TB, options Options, clients ...Credential) *Proxy {
	t.Helper()
	proxy, err := NewProxy(clients, options)
	if err != nil {
		t.Fatal(err)
	}
	return proxy
}

var (
	alice = Credential{"alice", secretA}
	bob   = Credential{"bob", secretB}
)

// tcpPair returns both ends of a TCP connection over loopback.
func tcpPair(t testing.TB) (client, server net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err = net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if server, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

// outcome is the result of a handshake at one side.
type outcome struct {
	conn *Conn
	err  error
}

// serve runs the proxy's side of a handshake.
func serve(proxy *Proxy, conn net.Conn) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		secure, err := proxy.Handshake(context.Background(), conn, nil)
		done <- outcome{secure, err}
	}()
	return done
}

// meet runs both sides of a successful handshake.
func meet(t testing.TB, agent *Agent, proxy *Proxy) (atAgent, atProxy *Conn) {
	t.Helper()
	client, server := tcpPair(t)
	done := serve(proxy, server)
	atAgent, err := agent.Handshake(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	other := <-done
	if other.err != nil {
		t.Fatal(other.err)
	}
	return atAgent, other.conn
}

func TestHandshake(t *testing.T) {
	proxy := newProxy(t, Options{}, alice, bob)
	seen := make(map[wire.Binding]bool)
	for name, secret := range map[string][]byte{"alice": secretA, "bob": secretB} {
		for range 2 {
			agent, server := meet(t, newAgent(t, secret), proxy)
			if server.Client.Name != name || agent.Client.ID != server.Client.ID || !bytes.Equal(server.Client.Secret, secret) {
				t.Errorf("%s: the proxy takes %+v for %+v", name, agent.Client, server.Client)
			}
			if agent.Binding != server.Binding || agent.Binding == wire.Unbound || seen[agent.Binding] {
				t.Errorf("%s: bindings %x and %x", name, agent.Binding, server.Binding)
			}
			seen[agent.Binding] = true
			for _, state := range []tls.ConnectionState{agent.ConnectionState(), server.ConnectionState()} {
				if state.Version != tls.VersionTLS13 || state.CurveID != tls.X25519MLKEM768 || state.NegotiatedProtocol != Protocol || state.DidResume {
					t.Errorf("%s: %+v", name, state)
				}
			}
			if _, err := agent.Write([]byte("upward")); err != nil {
				t.Error(err)
			}
			buffer := make([]byte, 6)
			if _, err := io.ReadFull(server, buffer); err != nil || string(buffer) != "upward" {
				t.Errorf("%q, %v", buffer, err)
			}
		}
	}
}

// TestAttachIsBoundToItsConnection checks that an attach is valid only on the
// connection that it was made for. It is refused on another connection of the same
// client, and on one without TLS.
func TestAttachIsBoundToItsConnection(t *testing.T) {
	proxy := newProxy(t, Options{}, alice)
	agent := newAgent(t, secretA)
	first, firstServer := meet(t, agent, proxy)
	second, secondServer := meet(t, agent, proxy)

	attach := wire.Attach{Session: wire.SessionID{1}, Fresh: true, Settings: wire.Settings{MaxStreams: 1, InitialWindow: wire.MinWindow}}
	attach.Stamp()
	message, err := attach.Append(nil, first.Client.Secret, first.Binding)
	if err != nil {
		t.Fatal(err)
	}
	for _, conn := range []*Conn{first, second} {
		if _, err := conn.Write(message); err != nil {
			t.Fatal(err)
		}
	}
	if got, _, err := wire.ReadAttach(firstServer, firstServer.Binding, firstServer.Client.Secret); err != nil || got.Session != attach.Session {
		t.Errorf("%+v, %v", got, err)
	}
	if _, _, err := wire.ReadAttach(secondServer, secondServer.Binding, secondServer.Client.Secret); !errors.Is(err, wire.ErrMAC) {
		t.Errorf("on another connection: %v", err)
	}
	if _, _, err := wire.ReadAttach(bytes.NewReader(message), wire.Unbound, secretA); !errors.Is(err, wire.ErrMAC) {
		t.Errorf("without TLS: %v", err)
	}
}

func TestSessionsBelongToTheirClient(t *testing.T) {
	proxy := newProxy(t, Options{}, alice, bob)
	_, ofAlice := meet(t, newAgent(t, secretA), proxy)
	_, ofBob := meet(t, newAgent(t, secretB), proxy)
	session := wire.SessionID{42}
	sessions := map[SessionKey]string{ofAlice.Client.Key(session): "alice's"}
	if got, there := sessions[ofBob.Client.Key(session)]; there {
		t.Errorf("bob finds %s", got)
	}
	// The same secret with another name is the same client.
	if err := proxy.SetClients([]Credential{{"alice's new phone", secretA}}); err != nil {
		t.Fatal(err)
	}
	_, again := meet(t, newAgent(t, secretA), proxy)
	if got := sessions[again.Client.Key(session)]; got != "alice's" || again.Client.Name != "alice's new phone" {
		t.Errorf("%+v finds %q", again.Client, got)
	}
}

// countingConn counts the TLS records that are written to it.
type countingConn struct {
	net.Conn
	mu      sync.Mutex
	records int
}

func (c *countingConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for rest := b; len(rest) >= 5; {
		c.records++
		rest = rest[5+(int(rest[3])<<8|int(rest[4])):]
	}
	return c.Conn.Write(b)
}

func TestOneRecordForEachMessage(t *testing.T) {
	for dynamic, want := range map[bool]func(int) bool{
		false: func(n int) bool { return n == 1 },
		true:  func(n int) bool { return n > 1 },
	} {
		agent, err := NewAgent(secretA, Options{DynamicRecords: dynamic})
		if err != nil {
			t.Fatal(err)
		}
		client, server := tcpPair(t)
		done := serve(newProxy(t, Options{}, alice), server)
		counting := &countingConn{Conn: client}
		conn, err := agent.Handshake(t.Context(), counting)
		if err != nil {
			t.Fatal(err)
		}
		before := counting.records
		if _, err := conn.Write(make([]byte, 16384)); err != nil {
			t.Fatal(err)
		}
		if n := counting.records - before; !want(n) {
			t.Errorf("dynamic records %v: %d records", dynamic, n)
		}
		_ = (<-done).conn.Close()
	}
}

func TestClientsComeAndGo(t *testing.T) {
	proxy := newProxy(t, Options{}, alice, bob)
	_, server := meet(t, newAgent(t, secretA), proxy)
	if !proxy.Knows(server.Client) {
		t.Error("alice is not known")
	}
	if err := proxy.SetClients([]Credential{bob}); err != nil {
		t.Fatal(err)
	}
	if clients := proxy.Clients(); len(clients) != 1 || clients[0].Name != "bob" || proxy.Knows(server.Client) {
		t.Errorf("%+v", clients)
	}
	refuse(t, newAgent(t, secretA), proxy, ErrSilent, ErrStranger)
	meet(t, newAgent(t, secretB), proxy)

	for _, c := range []struct {
		clients []Credential
		want    string
	}{
		{[]Credential{alice, {"eve", secretA}}, `clients "alice" and "eve" have the same secret; each needs one of its own`},
		{[]Credential{alice, {"eve", secretA[1:]}}, `client "eve": the secret is too short: 31 bytes; 32 are needed, drawn at random`},
	} {
		if err := proxy.SetClients(c.clients); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
	refuse(t, newAgent(t, secretA), proxy, ErrSilent, ErrStranger) // nothing was changed
	if _, err := NewAgent(secretA[1:], Options{}); !errors.Is(err, ErrSecret) {
		t.Errorf("an agent with a short secret: %v", err)
	}
}

// refuse runs both sides of a handshake that must fail with these errors.
func refuse(t *testing.T, agent *Agent, proxy *Proxy, atAgent, atProxy error) {
	t.Helper()
	client, server := tcpPair(t)
	done := serve(proxy, server)
	if _, err := agent.Handshake(t.Context(), client); !errors.Is(err, atAgent) {
		t.Errorf("at the agent: %v, want %v", err, atAgent)
	}
	if got := <-done; !errors.Is(got.err, atProxy) {
		t.Errorf("at the proxy: %v, want %v", got.err, atProxy)
	}
}

// TestWhoIsSlowIsDropped runs in a bubble with virtual time, so that the whole timeout
// passes at once.
func TestWhoIsSlowIsDropped(t *testing.T) {
	for name, send := range map[string]func(net.Conn){
		"sends nothing": func(net.Conn) {},
		"sends a byte a second": func(conn net.Conn) {
			for _, b := range append([]byte{22, 3, 1, 2, 0}, make([]byte, 100)...) {
				if _, err := conn.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				start := time.Now()
				done := serve(newProxy(t, Options{}, alice), server)
				var sending sync.WaitGroup
				sending.Go(func() { send(client) })
				got := <-done
				if took := time.Since(start); !errors.Is(got.err, os.ErrDeadlineExceeded) || took != DefaultTimeout {
					t.Errorf("%v after %v", got.err, took)
				}
				if answer, err := io.ReadAll(client); len(answer) != 0 || err != nil {
					t.Errorf("it was answered %x, %v", answer, err)
				}
				sending.Wait()
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		client, _ := net.Pipe()
		start := time.Now()
		if _, err := newAgent(t, secretA).Handshake(t.Context(), client); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != DefaultTimeout {
			t.Errorf("the agent's wait for a silent proxy: %v after %v", err, time.Since(start))
		}
	})
}

func TestEndOfContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	client, server := tcpPair(t)
	done := make(chan outcome, 2)
	go func() {
		conn, err := newProxy(t, Options{}, alice).Handshake(ctx, server, nil)
		done <- outcome{conn, err}
	}()
	cancel()
	if got := <-done; !errors.Is(got.err, context.Canceled) {
		t.Errorf("at the proxy: %v", got.err)
	}
	if _, err := newAgent(t, secretA).Handshake(ctx, client); !errors.Is(err, context.Canceled) {
		t.Errorf("at the agent: %v", err)
	}
}

// TestSilenceAfterTheHandshake checks that the timeout applies only to the handshake.
// Later a connection may be silent for long.
func TestSilenceAfterTheHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		done := serve(newProxy(t, Options{}, alice), server)
		agent, err := newAgent(t, secretA).Handshake(t.Context(), client)
		if err != nil {
			t.Fatal(err)
		}
		proxy := (<-done).conn
		time.Sleep(time.Hour)
		go func() { _, _ = agent.Write([]byte("late")) }()
		buffer := make([]byte, 4)
		if _, err := io.ReadFull(proxy, buffer); err != nil || string(buffer) != "late" {
			t.Errorf("%q, %v", buffer, err)
		}
	})
}
