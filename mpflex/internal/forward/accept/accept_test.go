package accept

import (
	"context"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mplab/internal/testkit"
)

// serving is a listener of a group.
type serving struct {
	*net.TCPListener
	cancel context.CancelFunc
	over   atomic.Int64  // connections that the group had no room for
	ended  chan struct{} // closed when Serve has returned
}

func serve(t *testing.T, g *Group, handle func(*net.TCPConn)) *serving {
	t.Helper()
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &serving{TCPListener: listener, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		g.Serve(ctx, listener, handle, func(*net.TCPConn) { s.over.Add(1) })
	}()
	t.Cleanup(func() {
		cancel()
		<-s.ended
	})
	return s
}

// try connects, and returns the error of that.
func (s *serving) try(t *testing.T) (*net.TCPConn, error) {
	t.Helper()
	conn, err := net.DialTCP("tcp4", nil, s.Addr().(*net.TCPAddr))
	if err == nil {
		_ = conn.SetDeadline(time.Now().Add(testkit.Patience))
		t.Cleanup(func() { _ = conn.Close() })
	}
	return conn, err
}

func (s *serving) dial(t *testing.T) *net.TCPConn {
	t.Helper()
	conn, err := s.try(t)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// hold answers a connection with a byte and serves it until the client's end.
func hold(conn *net.TCPConn) {
	defer conn.Close() //nolint:errcheck // nothing is left to lose
	_, _ = conn.Write([]byte{1})
	_, _ = conn.Read(make([]byte, 1))
}

// answered returns the error of reading the byte of hold.
func answered(conn *net.TCPConn) error {
	_, err := conn.Read(make([]byte, 1))
	return err
}

// served returns the error of a new connection, or of reading the byte of hold.
func (s *serving) served(t *testing.T) error {
	t.Helper()
	conn, err := s.try(t)
	if err != nil { // it can be reset before connect returns
		return err
	}
	return answered(conn)
}

// TestLimit: the limit counts the connections of all listeners of a group. A further one
// is reset. When a connection ends, there is room for another one.
func TestLimit(t *testing.T) {
	g := NewGroup(2)
	one, other := serve(t, g, hold), serve(t, g, hold)
	first, second := one.dial(t), other.dial(t)
	for _, conn := range []*net.TCPConn{first, second} {
		if err := answered(conn); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []*serving{one, other} {
		if err := s.served(t); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a connection beyond the limit ended with %v", err)
		}
		if n := s.over.Load(); n != 1 {
			t.Errorf("%d connections were reported", n)
		}
	}
	g.Go(func() { <-one.ended }) // does not count
	_ = first.Close()
	testkit.Eventually(t, "room for a connection", func() bool { return other.served(t) == nil })
}

// TestShutdown: the end of ctx closes the listener and leaves the connections. Wait waits
// for them, up to its limit.
func TestShutdown(t *testing.T) {
	g := NewGroup(2)
	s := serve(t, g, hold)
	conn := s.dial(t)
	if err := answered(conn); err != nil {
		t.Fatal(err)
	}
	s.cancel()
	<-s.ended
	if late, err := net.Dial("tcp4", s.Addr().String()); err == nil {
		_ = late.Close()
		t.Error("the listener is open")
	}
	if g.Wait(10 * time.Millisecond) {
		t.Error("a connection was not waited for")
	}
	_ = conn.Close()
	if !g.Wait(testkit.Patience) {
		t.Error("the connection did not end")
	}
}

// TestFailures: failures to accept are reported, and the listener continues.
func TestFailures(t *testing.T) {
	g := NewGroup(1)
	var failed atomic.Int64
	g.Failed = func(of *net.TCPListener) func(error) {
		return func(err error) {
			if of.Addr() == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%v: %v", of.Addr(), err)
			}
			failed.Add(1)
		}
	}
	s := serve(t, g, hold)
	_ = s.SetDeadline(time.Unix(1, 0)) // each accept fails, like one without a descriptor
	conn := s.dial(t)
	testkit.Eventually(t, "failures", func() bool { return failed.Load() >= 3 })
	_ = s.SetDeadline(time.Time{})
	if err := answered(conn); err != nil {
		t.Errorf("a connection that waited: %v", err)
	}
}
