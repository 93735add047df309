package downlink

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mplab/internal/testkit"
	"mplab/mpflex/internal/transport/identity"
	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/wire"
)

func secretOf(name string) []byte { return bytes.Repeat([]byte(name), identity.MinSecret) }

// proxy is a server for the clients a and b. Its streams are echoed.
type proxy struct {
	*Server
	t        *testing.T
	identity *identity.Proxy
	refusals chan error // of connections that did not become paths
}

func start(t *testing.T, change func(*Options)) *proxy {
	t.Helper()
	known, err := identity.NewProxy([]identity.Credential{{Name: "a", Secret: secretOf("a")}, {Name: "b", Secret: secretOf("b")}}, identity.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Identity: known, Serve: func(_ context.Context, _ identity.Client, st *session.Stream) {
		_, _ = io.Copy(st, st)
		_ = st.Close()
	}}
	if change != nil {
		change(&o)
	}
	p := &proxy{New(o), t, known, make(chan error, 100)}
	t.Cleanup(p.Close)
	return p
}

// agent is the agent's side of a session.
type agent struct {
	p      *proxy
	secret []byte
	id     wire.SessionID
	*session.Session
}

// agent returns a session of a client. The number must differ from that of its others.
func (p *proxy) agent(client string, number byte) *agent {
	p.t.Helper()
	s, err := session.New(session.Agent, session.Config{})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = s.Close() })
	return &agent{p, secretOf(client), wire.SessionID{number}, s}
}

// connect opens a connection to the proxy, and sends bytes.
func (p *proxy) connect(first []byte) *net.TCPConn {
	p.t.Helper()
	near, far := testkit.Pair(p.t)
	_ = near.SetDeadline(time.Now().Add(testkit.Patience))
	p.t.Cleanup(func() { _ = near.Close() })
	go func() {
		if err := p.Take(context.Background(), far, false); err != nil {
			p.refusals <- err
		}
	}()
	if _, err := near.Write(first); err != nil {
		p.t.Fatal(err)
	}
	return near
}

// introduce sends the attach of a path and returns the answer.
func (a *agent) introduce(path uint8, incarnation uint32, change func(*wire.Attach)) (*net.TCPConn, wire.Attached, error) {
	a.p.t.Helper()
	config := a.Config()
	message := wire.Attach{
		Session: a.id, Path: path, Incarnation: incarnation, Fresh: true, Interface: "lo",
		Settings: wire.Settings{MaxStreams: uint32(config.MaxStreams), InitialWindow: uint32(config.InitialWindow), KeepAlive: config.Keepalive},
	}
	message.Stamp()
	if change != nil {
		change(&message)
	}
	b, err := message.Append(nil, a.secret, wire.Unbound)
	if err != nil {
		a.p.t.Fatal(err)
	}
	conn := a.p.connect(b)
	answer, err := wire.ReadAttached(conn, a.secret, wire.Unbound, message.Nonce)
	return conn, answer, err
}

// attach makes a connection a path, and waits until it is one on both sides.
func (a *agent) attach(path uint8, incarnation uint32) wire.Attached {
	a.p.t.Helper()
	conn, answer, err := a.introduce(path, incarnation, nil)
	if err != nil || answer.Status != wire.OK {
		a.p.t.Fatalf("path %d, incarnation %d: %s, %v", path, incarnation, answer.Status, err)
	}
	_ = conn.SetDeadline(time.Time{})
	a.SetPeer(session.Peer{InitialWindow: int(answer.Settings.InitialWindow), MaxStreams: int(answer.Settings.MaxStreams)})
	if _, err := a.Attach(session.Link{Conn: conn, TCP: conn, ID: path, Incarnation: incarnation, Name: "lo"}); err != nil {
		a.p.t.Fatal(err)
	}
	testkit.Eventually(a.p.t, "the path at the proxy", func() bool {
		return slices.ContainsFunc(a.p.Sessions(), func(h Held) bool {
			return h.ID == a.id && bytes.Equal(h.Client.Secret, a.secret) && slices.ContainsFunc(h.Session.Status().Paths, func(p session.PathStatus) bool {
				return p.ID == path && p.Incarnation == incarnation
			})
		})
	})
	return answer
}

// status returns the status of the answer to an attach, and closes the connection.
func (a *agent) status(path uint8, incarnation uint32, change func(*wire.Attach)) wire.Status {
	a.p.t.Helper()
	conn, answer, err := a.introduce(path, incarnation, change)
	if err != nil {
		a.p.t.Errorf("path %d, incarnation %d: no answer: %v", path, incarnation, err)
	}
	_ = conn.Close()
	return answer.Status
}

// stream opens a stream and exchanges a byte.
func (a *agent) stream() *session.Stream {
	a.p.t.Helper()
	st, err := a.Open()
	if err != nil {
		a.p.t.Fatal(err)
	}
	_ = st.SetDeadline(time.Now().Add(testkit.Patience))
	if _, err := st.Write([]byte("x")); err != nil {
		a.p.t.Fatal(err)
	}
	if _, err := io.ReadFull(st, make([]byte, 1)); err != nil {
		a.p.t.Fatal(err)
	}
	return st
}

// refusal returns the reason of the next refused connection.
func (p *proxy) refusal() error {
	p.t.Helper()
	select {
	case err := <-p.refusals:
		return err
	case <-time.After(testkit.Patience):
		p.t.Fatal("no connection was refused")
		return nil
	}
}

// TestStrangers: a connection that proves no known secret gets no byte, and makes no
// session. So does a repeated message.
func TestStrangers(t *testing.T) {
	p := start(t, nil)
	stranger := p.agent("a", 1)
	stranger.secret = secretOf("x")
	if _, _, err := stranger.introduce(0, 1, nil); err == nil {
		t.Error("another secret was accepted")
	}
	if err := p.refusal(); !errors.Is(err, wire.ErrMAC) {
		t.Error(err)
	}

	known := p.agent("a", 1)
	message := wire.Attach{Session: known.id, Incarnation: 1, Fresh: true, Settings: wire.Settings{MaxStreams: 1, InitialWindow: wire.MinWindow, KeepAlive: wire.MinKeepAlive}}
	message.Stamp()
	b, err := message.Append(nil, known.secret, wire.Unbound)
	if err != nil {
		t.Fatal(err)
	}
	altered := bytes.Clone(b)
	altered[len(altered)-1] ^= 1
	for _, c := range []struct {
		name  string
		bytes []byte
		want  error
	}{
		{"altered", altered, wire.ErrMAC},
		{"not mpflex", bytes.Repeat([]byte("GET / HTTP/1.1\r\n"), 20), wire.ErrFormat},
		{"cut short", b[:50], io.ErrUnexpectedEOF},
	} {
		conn := p.connect(c.bytes)
		_ = conn.CloseWrite()
		if got, err := io.ReadAll(conn); len(got) != 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: got % x, %v", c.name, got, err)
		}
		if err := p.refusal(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if n := len(p.Sessions()); n != 0 {
		t.Errorf("%d sessions were made", n)
	}
	if _, err := wire.ReadAttached(p.connect(b), known.secret, wire.Unbound, message.Nonce); err != nil {
		t.Fatal(err)
	}
	if _, err := wire.ReadAttached(p.connect(b), known.secret, wire.Unbound, message.Nonce); err == nil {
		t.Error("a repeated attach was answered")
	}
	if err := p.refusal(); !errors.Is(err, wire.ErrReplay) {
		t.Error(err)
	}
}

// TestSessions: paths of one client and number belong to one session. Another client's
// session with the same number is another one.
func TestSessions(t *testing.T) {
	var mu sync.Mutex
	var events []string
	p := start(t, func(o *Options) {
		o.Log = func(e Event) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, e.Client+" "+e.What+" "+e.Name)
		}
	})
	a, other := p.agent("a", 1), p.agent("b", 1)
	first, second := a.attach(0, 1), a.attach(1, 1)
	if first.Birth != second.Birth || first.Settings.MaxStreams == 0 {
		t.Errorf("%+v, %+v", first, second)
	}
	if got := other.attach(0, 1); got.Birth == first.Birth {
		t.Error("two clients got the same session")
	}
	a.stream()
	all := p.Sessions()
	if len(all) != 2 || all[0].Client.Name != "a" || all[1].Client.Name != "b" || all[0].ID != a.id || all[1].ID != other.id {
		t.Fatalf("%+v", all)
	}
	for _, c := range []struct {
		name        string
		path        uint8
		incarnation uint32
		change      func(*wire.Attach)
		want        wire.Status
	}{
		{"the same incarnation", 0, 1, nil, wire.Stale},
		{"a session that does not exist", 0, 1, func(m *wire.Attach) { m.Session, m.Fresh = wire.SessionID{9}, false }, wire.UnknownSession},
		{"too high a number", wire.MaxPaths, 1, nil, wire.Bad},
	} {
		if got := a.status(c.path, c.incarnation, c.change); got != c.want {
			t.Errorf("%s: %s", c.name, got)
		}
		if err := p.refusal(); !strings.Contains(err.Error(), c.want.String()) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if a.attach(0, 2).Birth != first.Birth {
		t.Error("a new incarnation made another session")
	}
	_ = a.Close()
	testkit.Eventually(t, "the end of the session", func() bool { return len(p.Sessions()) == 1 })
	mu.Lock()
	defer mu.Unlock()
	if all := strings.Join(events, "; "); !strings.Contains(all, "a attached lo") || !strings.Contains(all, "b attached lo") || strings.Contains(all, "b ended lo") {
		t.Error(all)
	}
}

// TestLimits: a client has at most Most sessions, and its sessions share the bounds of
// connections and streams. Another client is not affected.
func TestLimits(t *testing.T) {
	t.Run("sessions", func(t *testing.T) {
		p := start(t, func(o *Options) { o.Most = 2 })
		busy, idle := p.agent("a", 1), p.agent("a", 2)
		busy.attach(0, 1)
		busy.stream()
		idle.attach(0, 1)
		p.agent("a", 3).attach(0, 1) // replaces the session without streams
		select {
		case <-idle.Done():
		case <-time.After(testkit.Patience):
			t.Error("the session without streams continues")
		}
		for _, held := range p.Sessions() {
			if held.ID == idle.id {
				t.Error("the session without streams is held")
			}
		}
		third := p.agent("a", 4)
		third.attach(0, 1)
		third.stream()
		if got := p.agent("a", 5).status(0, 1, nil); got != wire.Limit {
			t.Errorf("a session too many: %s", got)
		}
		p.agent("b", 1).attach(0, 1)
		busy.stream()
	})
	t.Run("connections", func(t *testing.T) {
		p := start(t, func(o *Options) { o.Connections = &identity.Quota{Most: 1} })
		a := p.agent("a", 1)
		a.attach(0, 1)
		if got := a.status(1, 1, nil); got != wire.Limit {
			t.Errorf("a connection too many: %s", got)
		}
		p.agent("b", 1).attach(0, 1)
		_ = a.Close()
		testkit.Eventually(t, "room for a connection", func() bool {
			conn, answer, err := p.agent("a", 2).introduce(0, 1, nil)
			_ = conn.Close()
			return err == nil && answer.Status == wire.OK
		})
	})
	t.Run("streams", func(t *testing.T) {
		var refused atomic.Int64
		p := start(t, func(o *Options) {
			o.Streams = &identity.Quota{Most: 2}
			o.Refused = func(client identity.Client, _ net.Addr, reason error) {
				if client.Name != "a" || !strings.Contains(reason.Error(), "limit of 2 streams") {
					t.Errorf("%s: %v", client.Name, reason)
				}
				refused.Add(1)
			}
		})
		one, other := p.agent("a", 1), p.agent("a", 2)
		if got := one.attach(0, 1); got.Settings.MaxStreams != 2 {
			t.Errorf("%+v", got.Settings)
		}
		other.attach(0, 1)
		first := one.stream()
		other.stream()
		st, err := other.Open()
		if err != nil {
			t.Fatal(err)
		}
		_ = st.SetDeadline(time.Now().Add(testkit.Patience))
		_, _ = st.Write([]byte("x"))
		if _, err := st.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) || refused.Load() != 1 {
			t.Errorf("a stream too many: %v, %d refused", err, refused.Load())
		}
		_ = first.CloseWrite()
		_, _ = io.Copy(io.Discard, first)
		_ = first.Close()
		testkit.Eventually(t, "the end of a stream", func() bool { return one.Status().Streams == 0 })
		one.stream()
	})
}

// TestBegin: Begin sees each new session before its first stream, and can refuse it.
func TestBegin(t *testing.T) {
	refuse := errors.New("not now")
	var begun []string
	p := start(t, func(o *Options) {
		o.Begin = func(client identity.Client, id wire.SessionID, s *session.Session, schemes []byte) error {
			begun = append(begun, client.Name+string(schemes))
			if string(schemes) == "bad" {
				return refuse
			}
			return nil
		}
	})
	if got := p.agent("a", 1).status(0, 1, func(m *wire.Attach) { m.Settings.Schemes = []byte("bad") }); got != wire.Bad {
		t.Error(got)
	}
	if n := len(p.Sessions()); n != 0 {
		t.Errorf("%d sessions", n)
	}
	a := p.agent("a", 1)
	a.attach(0, 1)
	a.attach(1, 1)
	if all := strings.Join(begun, " "); all != "abad a" {
		t.Error(all)
	}
}

// TestRemovedClient: sessions of a removed client end. Those of others continue.
func TestRemovedClient(t *testing.T) {
	var reason atomic.Value
	p := start(t, func(o *Options) {
		o.Log = func(e Event) {
			if e.What == session.Over && e.Client == "a" {
				reason.Store(e.Err)
			}
		}
	})
	gone, stays := p.agent("a", 1), p.agent("b", 1)
	gone.attach(0, 1)
	stays.attach(0, 1)
	stays.stream()
	if err := p.identity.SetClients([]identity.Credential{{Name: "b", Secret: secretOf("b")}}); err != nil {
		t.Fatal(err)
	}
	gone.stream()
	p.EndUnknown()
	if err, _ := reason.Load().(error); !errors.Is(err, ErrRemoved) {
		t.Errorf("the session ended with %v", err)
	}
	select {
	case <-gone.Done():
	case <-time.After(testkit.Patience):
		t.Error("the session of a removed client continues")
	}
	if _, _, err := gone.introduce(1, 1, nil); err == nil {
		t.Error("a removed client got an answer")
	}
	stays.stream()
}

// TestClose: the end of the server cancels Serve's context and waits for it. Later
// connections get the status Draining.
func TestClose(t *testing.T) {
	var served atomic.Bool
	p := start(t, func(o *Options) {
		o.Serve = func(ctx context.Context, _ identity.Client, st *session.Stream) {
			_, _ = io.Copy(st, io.LimitReader(st, 1))
			<-ctx.Done()
			_ = st.Close()
			served.Store(true)
		}
	})
	a := p.agent("a", 1)
	a.attach(0, 1)
	a.stream()
	p.Close()
	if !served.Load() {
		t.Error("Serve was not waited for")
	}
	select {
	case <-a.Done():
	case <-time.After(testkit.Patience):
		t.Error("the session continues")
	}
	if got := p.agent("a", 2).status(0, 1, nil); got != wire.Draining {
		t.Error(got)
	}
}
