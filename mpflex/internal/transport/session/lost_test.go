package session

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"mplab/mpflex/internal/transport/frame"
)

// halfAttach makes a connection a path only at the proxy, as when the agent aborts an
// attach whose answer is in flight. It returns both ends.
func (k *pair) halfAttach(id uint8) (agent *net.TCPConn, proxy *Path) {
	k.t.Helper()
	k.incarnation[id]++
	agent, conn := link(k.t)
	k.t.Cleanup(func() { _ = agent.Close() })
	proxy, err := k.proxy.Attach(Link{Conn: conn, TCP: conn, ID: id, Incarnation: k.incarnation[id]})
	if err != nil {
		k.t.Fatal(err)
	}
	return agent, proxy
}

// await waits until a condition holds. It checks with the session locked.
func await(t *testing.T, s *Session, what string, f func() bool) {
	t.Helper()
	for range 2000 {
		s.mu.Lock()
		ok := f()
		s.mu.Unlock()
		if ok {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("did not come: %s", what)
}

// pass advances the session's clock.
func (s *Session) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = s.begun.Add(-d)
	s.watchOver()
}

// TestHalfAttached: the agent aborts an attach after the proxy has used the path. The
// bytes that the agent's TCP acknowledged are sent again over the other path when the
// path end of the agent arrives, or after formerPatience without one.
func TestHalfAttached(t *testing.T) {
	for name, giveUp := range map[string]bool{"given up": true, "nobody says so": false} {
		t.Run(name, func(t *testing.T) {
			k := newPair(t, Config{}, 1)
			st, other := k.stream("hello")
			conn, half := k.halfAttach(1)
			const size = 3 << 20
			go func() {
				_, _ = io.Copy(other, text(1, size))
				_ = other.CloseWrite()
			}()
			await(t, k.proxy, "delivered messages", func() bool {
				_ = half.refresh()
				return half.sent.acked > 0
			})
			_ = conn.SetLinger(0)
			_ = conn.Close()
			if giveUp {
				k.agent.GiveUp(1, 1)
			} else {
				await(t, k.proxy, "the wait for the path end", func() bool { return len(k.proxy.former) == 1 && k.proxy.former[0].sinceNS != 0 })
				k.proxy.pass(formerPatience)
			}
			_ = st.SetReadDeadline(time.Now().Add(20 * time.Second))
			if got, want := digest(t, st), digest(t, text(1, size)); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			await(t, k.proxy, "an end of the waiting", func() bool { return len(k.proxy.former) == 0 })
		})
	}
}

// TestManyFormerPaths: the messages of former paths beyond mostFormer are not lost.
func TestManyFormerPaths(t *testing.T) {
	k := newPair(t, Config{}, 0)
	other, err := k.proxy.Open()
	if err != nil {
		t.Fatal(err)
	}
	const more = mostFormer + 6
	for i := range byte(more) {
		_, half := k.halfAttach(1)
		if _, err := other.Write([]byte{i}); err != nil {
			t.Fatal(err)
		}
		await(t, k.proxy, "a delivered message", func() bool {
			_ = half.refresh()
			return half.sent.acked > 0
		})
		half.Abandon(errGivenUp)
	}
	k.attach(0)
	await(t, k.proxy, "the wait for path ends", func() bool { return k.proxy.former[mostFormer-1].sinceNS != 0 })
	k.proxy.pass(formerPatience)
	st, err := k.agent.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = st.SetReadDeadline(time.Now().Add(20 * time.Second))
	got := make([]byte, more)
	if n, err := io.ReadFull(st, got); err != nil {
		t.Fatalf("%d of %d messages came, %v", n, more, err)
	}
	for i, b := range got {
		if int(b) != i {
			t.Fatalf("%v", got)
		}
	}
}

// frames reads frames until last returns true.
func frames(t *testing.T, conn *net.TCPConn, last func(h frame.Header, payload []byte) bool) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	for {
		var head [frame.HeaderSize]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			t.Fatal(err)
		}
		h, err := frame.Parse(&head)
		if err != nil {
			t.Fatal(err)
		}
		payload := make([]byte, h.Size)
		if _, err := io.ReadFull(conn, payload); err != nil {
			t.Fatal(err)
		}
		if last(h, payload) {
			return
		}
	}
}

// TestGiveUp: GiveUp sends a path end with 0 bytes. It also sends the ends of streams
// again: their acknowledgements may be lost.
func TestGiveUp(t *testing.T) {
	s, conn := peer(t, Config{})
	st, err := s.Open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	_ = st.CloseWrite()
	isFin := func(h frame.Header, _ []byte) bool { return h.Type == frame.Data && h.Flags&frame.Fin != 0 }
	frames(t, conn, isFin)
	s.GiveUp(3, 7)
	frames(t, conn, func(h frame.Header, payload []byte) bool {
		return h.Type == frame.PathEnd && h.Flags == 3 && h.Stream == 7 && bytes.Equal(payload, make([]byte, 8))
	})
	frames(t, conn, isFin)
}

// TestControlOfStalledPath: an acknowledgement that a stalled path holds is sent again
// before the path ends: the other side may wait only for it.
func TestControlOfStalledPath(t *testing.T) {
	s, conn := peer(t, Config{})
	if _, err := conn.Write(data(0, 1, 0, "x")); err != nil {
		t.Fatal(err)
	}
	isAck := func(h frame.Header, payload []byte) bool {
		return h.Type == frame.Ack && h.Stream == 1 && h.Seq == 1 && binary.BigEndian.Uint32(payload) > 0
	}
	frames(t, conn, isAck)
	s.mu.Lock()
	p := s.paths[0]
	p.written++ // one unacknowledged byte
	p.progress = s.nowNS() - int64(time.Minute)
	s.stall(p, s.nowNS())
	s.mu.Unlock()
	frames(t, conn, isAck)
}

// TestOlderIncarnation: a connection that a later attach has overtaken does not replace
// the newer one.
func TestOlderIncarnation(t *testing.T) {
	k := newPair(t, Config{}, 0)
	_, newer := k.halfAttach(1)
	_, newest := k.halfAttach(1)
	<-newer.Done()
	a, b := link(t)
	defer a.Close()
	defer b.Close()
	if _, err := k.proxy.Attach(Link{Conn: b, TCP: b, ID: 1, Incarnation: 1}); !errors.Is(err, errReplaced) {
		t.Errorf("%v", err)
	}
	select {
	case <-newest.Done():
		t.Error("the newer connection was given up")
	default:
	}
}
