package relay

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mplab/internal/netx"
	"mplab/internal/testkit"
)

// between relays between two connections over loopback, whose other ends it returns.
func between(t *testing.T, change func(*Session)) (s *Session, application, server *net.TCPConn, ended chan error) {
	t.Helper()
	application, a := testkit.Pair(t)
	server, b := testkit.Pair(t)
	for _, conn := range []*net.TCPConn{application, server} {
		_ = conn.SetDeadline(time.Now().Add(testkit.Patience))
		t.Cleanup(func() { _ = conn.Close() })
	}
	s, ended = &Session{A: a, B: b}, make(chan error, 1)
	if change != nil {
		change(s)
	}
	go func() { ended <- s.Run() }()
	return s, application, server, ended
}

// TestHalfClose: the end of one direction is passed on, and the other one continues. All
// bytes are relayed and counted.
func TestHalfClose(t *testing.T) {
	s, application, server, ended := between(t, nil)
	up, down := make([]byte, 3*chunk+1), make([]byte, 2*chunk+5)
	for i, b := range [][]byte{up, down} {
		_, _ = rand.NewChaCha8([32]byte{byte(i)}).Read(b)
	}
	go func() {
		_, _ = application.Write(up)
		_ = application.CloseWrite()
	}()
	if got, err := io.ReadAll(server); err != nil || !bytes.Equal(got, up) {
		t.Fatalf("%d of %d bytes, %v", len(got), len(up), err)
	}
	go func() {
		_, _ = server.Write(down)
		_ = server.CloseWrite()
	}()
	if got, err := io.ReadAll(application); err != nil || !bytes.Equal(got, down) {
		t.Fatalf("%d of %d bytes, %v", len(got), len(down), err)
	}
	if err := <-ended; err != nil || s.Up.Load() != int64(len(up)) || s.Down.Load() != int64(len(down)) {
		t.Errorf("%v; %d and %d bytes are counted", err, s.Up.Load(), s.Down.Load())
	}
}

// TestResets: a reset of one side resets the other one, in both directions, also after the
// end of one stream.
func TestResets(t *testing.T) {
	for _, half := range []bool{false, true} {
		for _, up := range []bool{false, true} {
			_, from, to, ended := between(t, nil)
			if !up {
				from, to = to, from
			}
			if half {
				_ = to.CloseWrite()
				if _, err := from.Read(make([]byte, 1)); err != io.EOF {
					t.Fatal(err)
				}
			}
			netx.Abort(from)
			if _, err := to.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("up %t, half closed %t: the other side ended with %v", up, half, err)
			}
			if err := <-ended; !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("up %t, half closed %t: %v", up, half, err)
			}
		}
	}
}

// TestAbort: both sides are reset, with the first cause. Samples are taken before that.
func TestAbort(t *testing.T) {
	var samples atomic.Int64
	cause := errors.New("the first cause")
	s, application, server, ended := between(t, func(s *Session) { s.Sample = func() { samples.Add(1) } })
	s.Abort(cause)
	s.Abort(errors.New("another one"))
	if err := <-ended; err != cause {
		t.Error(err)
	}
	for _, conn := range []*net.TCPConn{application, server} {
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a side ended with %v", err)
		}
	}
	if samples.Load() == 0 {
		t.Error("no sample")
	}
}

// TestOpen: Open reads the first bytes of the network's side; only later ones reach the
// application. Bytes of the application do not wait for it. Its error resets both sides.
func TestOpen(t *testing.T) {
	for _, fails := range []error{nil, errors.New("refused")} {
		first := make([]byte, 3)
		s, application, server, ended := between(t, func(s *Session) {
			s.Open = func() error {
				if _, err := io.ReadFull(s.B, first); err != nil {
					return err
				}
				return fails
			}
		})
		_, _ = application.Write([]byte("hello"))
		if _, err := io.ReadFull(server, make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		_, _ = server.Write([]byte("ok.later"))
		_ = server.CloseWrite()
		got, err := io.ReadAll(application)
		if fails == nil && (string(got) != "later" || err != nil) || fails != nil && (len(got) != 0 || !errors.Is(err, syscall.ECONNRESET)) {
			t.Errorf("%v: the application read %q, %v", fails, got, err)
		}
		_ = application.CloseWrite()
		if err := <-ended; err != fails || string(first) != "ok." {
			t.Errorf("%v, want %v; Open read %q", err, fails, first)
		}
		if fails == nil && s.Down.Load() != 5 {
			t.Errorf("%d bytes are counted", s.Down.Load())
		}
	}
}
