package session

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// pair holds both ends of a session, over TCP on loopback.
type pair struct {
	t            testing.TB
	agent, proxy *Session
	private      bool // paths use TLS
	mu           sync.Mutex
	incarnation  map[uint8]uint32
}

func newPair(t testing.TB, c Config, paths int) *pair {
	t.Helper()
	return newPairOf(t, c, c, paths)
}

// newPairOf is newPair with different settings for the two sides.
func newPairOf(t testing.TB, agent, proxy Config, paths int) *pair {
	t.Helper()
	k := &pair{t: t, incarnation: map[uint8]uint32{}}
	var err error
	if k.agent, err = New(Agent, agent); err != nil {
		t.Fatal(err)
	}
	if k.proxy, err = New(Proxy, proxy); err != nil {
		t.Fatal(err)
	}
	k.agent.SetPeer(Peer{k.proxy.config.InitialWindow, k.proxy.config.MaxStreams})
	k.proxy.SetPeer(Peer{k.agent.config.InitialWindow, k.agent.config.MaxStreams})
	t.Cleanup(func() {
		for _, s := range []*Session{k.agent, k.proxy} {
			_ = s.Close()
			if s.memory.Load() != 0 || proxy.Budget == nil && proxy.Account == nil && (s.config.Budget.used.Load() != 0 || s.config.Budget.promised.Load() != 0) {
				t.Errorf("%d bytes are charged for a session that is over; %d used, %d promised", s.memory.Load(), s.config.Budget.used.Load(), s.config.Budget.promised.Load())
			}
		}
	})
	for i := range paths {
		k.attach(uint8(i))
	}
	return k
}

// link returns both ends of a loopback connection.
func link(t testing.TB) (a, b *net.TCPConn) {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialed, err := net.DialTCP("tcp", nil, l.Addr().(*net.TCPAddr))
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	return dialed, accepted
}

// attach sets up a path again and returns the agent's side of it.
func (k *pair) attach(id uint8) *Path {
	k.t.Helper()
	k.mu.Lock()
	k.incarnation[id]++
	n := k.incarnation[id]
	k.mu.Unlock()
	a, b := link(k.t)
	name := "path" + string('0'+rune(id))
	here := Link{Conn: a, TCP: a, ID: id, Incarnation: n, Name: name}
	there := Link{Conn: b, TCP: b, ID: id, Incarnation: n, Name: name}
	if k.private {
		here.Counter, there.Counter = &Counter{Conn: a}, &Counter{Conn: b}
		here.Conn, there.Conn = private(k.t, here.Counter, there.Counter)
	}
	pa, err := k.agent.Attach(here)
	if err != nil {
		k.t.Error(err)
		return nil
	}
	if _, err := k.proxy.Attach(there); err != nil {
		k.t.Error(err)
	}
	return pa
}

// stream opens a stream with its first bytes and returns both ends.
func (k *pair) stream(first string) (agent, proxy *Stream) {
	k.t.Helper()
	st, err := k.agent.Open()
	if err != nil {
		k.t.Fatal(err)
	}
	if _, err := st.Write([]byte(first)); err != nil {
		k.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	other, err := k.proxy.Accept(ctx)
	if err != nil {
		k.t.Fatal(err)
	}
	return st, other
}

// settled waits until no stream is left on either side.
func (k *pair) settled() {
	k.t.Helper()
	for range 500 {
		if k.agent.Status().Streams == 0 && k.proxy.Status().Streams == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	k.t.Errorf("streams are left: agent %+v, proxy %+v", k.agent.Streams(), k.proxy.Streams())
}
