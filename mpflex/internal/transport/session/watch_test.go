package session

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// looked returns how often the session's watch has looked.
func (s *Session) looked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looks
}

// pinged returns how often the first path was pinged.
func (s *Session) pinged() (n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.paths {
		n += p.pings
	}
	return n
}

func TestSilentStreamsWakeNobody(t *testing.T) {
	t.Parallel()
	k := newPair(t, Config{Keepalive: time.Hour}, 2)
	for range 20 {
		a, b := k.stream("x")
		if _, err := io.ReadFull(b, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Write([]byte("y")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(a, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Second) // for acknowledgements, and the last checks after progress
	agent, proxy := k.agent.looked(), k.proxy.looked()
	time.Sleep(2 * time.Second)
	if n, m := k.agent.looked()-agent, k.proxy.looked()-proxy; n+m > 2 {
		t.Errorf("with silent streams the agent looks %d times in 2 s, the proxy %d times", n, m)
	}
	if agent == 0 {
		t.Errorf("with traffic the agent looked %d times", agent)
	}
}

// TestPingsOfSilentPaths checks that pings continue while the watch sleeps, and need
// few checks.
func TestPingsOfSilentPaths(t *testing.T) {
	t.Parallel()
	const keepalive = 200 * time.Millisecond
	k := newPair(t, Config{Keepalive: keepalive}, 1)
	k.stream("x")
	time.Sleep(time.Second)
	pings, looks := k.agent.pinged()+k.proxy.pinged(), k.agent.looked()+k.proxy.looked()
	time.Sleep(2 * time.Second)
	pings, looks = k.agent.pinged()+k.proxy.pinged()-pings, k.agent.looked()+k.proxy.looked()-looks
	// A ping of one side also shows the other side that the path works.
	if pings < 4 || pings > 20 || looks > 8*int(pings) {
		t.Errorf("%d pings, %d looks in 10 keep-alive periods", pings, looks)
	}
	if n := len(k.agent.Status().Paths); n != 1 {
		t.Errorf("%d paths are left", n)
	}
}

func TestPathThatDoesNotAnswerPings(t *testing.T) {
	t.Parallel()
	s, err := New(Agent, Config{Keepalive: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	here, there := link(t)
	defer there.Close()
	p, err := s.Attach(Link{Conn: here, TCP: here, Incarnation: 1})
	if err != nil {
		t.Fatal(err)
	}
	st, err := s.Open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	select {
	case <-p.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the path is still there")
	}
	if after := time.Since(began); after < pingAnswer {
		t.Errorf("it ended after %v", after)
	}
}

func TestSessionWithoutPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = time.Hour
		s, err := New(Agent, Config{PathTimeout: timeout})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		st, err := s.Open()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := st.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		<-s.Done()
		if after := time.Since(began); after != timeout || !errors.Is(s.Err(), ErrNoPath) || s.looked() > 4 {
			t.Errorf("ended after %v with %v; looked %d times", after, s.Err(), s.looked())
		}
	})
}

func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Agent, Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		st, err := s.Open()
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		st.Flush(time.Hour)
		if after := time.Since(began); after != 0 {
			t.Errorf("nothing was written, and it took %v", after)
		}
		if _, err := st.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		st.Flush(20 * time.Second)
		if after := time.Since(began); after != 20*time.Second {
			t.Errorf("the timeout was %v", after)
		}
		time.AfterFunc(5*time.Second, func() { st.Abort(Aborted) })
		st.Flush(20 * time.Second)
		if after := time.Since(began); after != 25*time.Second {
			t.Errorf("after the reset it waited until %v", after)
		}
	})
	k := newPair(t, Config{}, 0)
	st, err := k.agent.Open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Write(make([]byte, 100_000)); err != nil {
		t.Fatal(err)
	}
	flushed := make(chan struct{})
	go func() {
		st.Flush(time.Hour)
		close(flushed)
	}()
	k.attach(0)
	select {
	case <-flushed:
	case <-time.After(20 * time.Second):
		t.Error("all has arrived, and it waits")
	}
}

// TestCloseWithFullSendBuffer checks that Close does not wait for a TLS path whose TCP
// accepts no bytes: the closing alert of TLS would block for 5 s.
func TestCloseWithFullSendBuffer(t *testing.T) {
	s, err := New(Proxy, Config{})
	if err != nil {
		t.Fatal(err)
	}
	far, near := link(t)
	defer far.Close()
	there, here := &Counter{Conn: far}, &Counter{Conn: near}
	_, conn := private(t, there, here)
	if _, err := s.Attach(Link{Conn: conn, TCP: near, Counter: here, Incarnation: 1}); err != nil {
		t.Fatal(err)
	}
	for n := 1; n > 0; {
		_ = near.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
		n, _ = near.Write(make([]byte, 1<<20))
	}
	began := time.Now()
	_ = s.Close()
	if after := time.Since(began); after > 3*time.Second {
		t.Errorf("Close took %v", after)
	}
}
