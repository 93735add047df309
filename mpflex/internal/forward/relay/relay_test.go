package relay

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mplab/internal/netx"
	"mplab/internal/testkit"
)

// side is an in-memory connection that moves bytes like a stream of a session. It
// counts how often a reader started to wait for bytes.
type side struct {
	net.Conn
	waits atomic.Int64
}

func (s *side) SetReadDeadline(t time.Time) error {
	s.waits.Add(1)
	return s.Conn.SetReadDeadline(t)
}

func (s *side) CloseWrite() error   { return s.Close() }
func (s *side) SetLinger(int) error { return nil }

func (s *side) CopyTo(w io.Writer, n int64) (int64, error) { return some(w, s, n) }

func (s *side) CopyFrom(r io.Reader, n int64) (int64, error) { return some(s, r, n) }

// some copies n bytes or more.
func some(w io.Writer, r io.Reader, n int64) (total int64, err error) {
	buffer := make([]byte, 1000)
	for total < n {
		k, err := r.Read(buffer)
		if k > 0 { // without bytes, net.Pipe would wait for a reader
			if _, failed := w.Write(buffer[:k]); failed != nil {
				return total, failed
			}
		}
		total += int64(k)
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// running is a session between an application and a server, in memory.
type running struct {
	Session
	application, server net.Conn
	ended               chan error
}

func run(idle time.Duration, sample func()) *running {
	application, a := net.Pipe()
	b, server := net.Pipe()
	r := &running{Session: Session{A: &side{Conn: a}, B: &side{Conn: b}, Idle: idle, Sample: sample}, application: application, server: server, ended: make(chan error, 1)}
	go func() { r.ended <- r.Run() }()
	return r
}

// waits returns how often the directions started to wait.
func (r *running) waits() int64 { return r.A.(*side).waits.Load() + r.B.(*side).waits.Load() }

// say sends a byte in each direction.
func (r *running) say(t *testing.T) {
	t.Helper()
	for _, way := range [][2]net.Conn{{r.application, r.server}, {r.server, r.application}} {
		go func() { _, _ = way[0].Write([]byte{1}) }()
		if _, err := way[1].Read(make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSilentConnectionIsNotLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(300*time.Second, nil)
		sampled := run(300*time.Second, func() {})
		for range 2 { // also after a byte that ends a silence
			start := time.Now()
			r.say(t)
			sampled.say(t)
			if late := time.Since(start); late != 0 {
				t.Errorf("the byte waited for %v", late)
			}
			before, beforeSampled := r.waits(), sampled.waits()
			time.Sleep(290 * time.Second)
			synctest.Wait()
			if n := r.waits() - before; n > 4 {
				t.Errorf("both directions together woke %d times", n)
			}
			if n := sampled.waits() - beforeSampled; n < 100 {
				t.Errorf("both directions together took %d samples", n)
			}
			if up, down := r.Up.Load(), r.Down.Load(); up != down || up == 0 {
				t.Errorf("%d, %d bytes are counted", up, down)
			}
		}
		for _, r := range []*running{r, sampled} {
			if err := <-r.ended; !errors.Is(err, ErrIdle) {
				t.Error(err)
			}
		}
	})
}

func TestIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, idle := range []time.Duration{40 * time.Millisecond, 3 * time.Second, time.Hour} {
			r := run(idle, nil)
			time.Sleep(idle / 2)
			r.say(t)
			said := time.Now()
			if err := <-r.ended; !errors.Is(err, ErrIdle) {
				t.Error(err)
			}
			if after := time.Since(said); after < idle || after > idle+idle/4+time.Second*5 {
				t.Errorf("ended %v after the last byte, not %v", after, idle)
			}
		}
		r := run(0, nil)
		time.Sleep(1000 * time.Hour)
		r.say(t)
		r.Abort(ErrShutdown)
		if err := <-r.ended; !errors.Is(err, ErrShutdown) {
			t.Error(err)
		}
	})
}

// TestBytesAfterSilence checks that bytes after a silence are relayed, also between two
// TCP connections.
func TestBytesAfterSilence(t *testing.T) {
	echo, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	connect := func() (dialed, accepted *net.TCPConn) {
		if dialed, err = net.DialTCP("tcp", nil, echo.Addr().(*net.TCPAddr)); err != nil {
			t.Fatal(err)
		}
		if accepted, err = echo.AcceptTCP(); err != nil {
			t.Fatal(err)
		}
		return dialed, accepted
	}
	application, a := connect()
	b, server := connect()
	const idle = 2 * time.Second
	s := &Session{A: a, B: b, Idle: idle}
	ended := make(chan error, 1)
	go func() { ended <- s.Run() }()
	time.Sleep(idle / 2) // both directions rest after a quarter
	for _, way := range [][2]*net.TCPConn{{application, server}, {server, application}} {
		if _, err := way[0].Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 10)
		_ = way[1].SetReadDeadline(time.Now().Add(testkit.Patience))
		if n, err := way[1].Read(got); err != nil || string(got[:n]) != "hello" {
			t.Errorf("%q, %v", got[:n], err)
		}
	}
	time.Sleep(idle / 2)
	netx.Abort(server)
	_ = application.SetReadDeadline(time.Now().Add(testkit.Patience))
	if _, err := application.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("a reset after a silence arrives as %v", err)
	}
	if err := <-ended; err == nil || errors.Is(err, ErrIdle) {
		t.Error(err)
	}
}
