package netx

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// loop returns a TCP connection over loopback.
func loop(t *testing.T) (a, b *net.TCPConn) {
	t.Helper()
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err = net.DialTCP("tcp4", nil, l.Addr().(*net.TCPAddr))
	if err != nil {
		t.Fatal(err)
	}
	if b, err = l.AcceptTCP(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = a.Close()
		_ = b.Close()
	})
	return a, b
}

// fillUp writes until the connection accepts no more data.
func fillUp(t *testing.T, conn *net.TCPConn) {
	t.Helper()
	_ = conn.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
	for {
		if _, err := conn.Write(make([]byte, 1<<16)); errors.Is(err, os.ErrDeadlineExceeded) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.SetWriteDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
}

func TestGauge(t *testing.T) {
	a, b := loop(t)
	gauge, err := NewGauge(a)
	if err != nil {
		t.Fatal(err)
	}
	state, err := gauge.Read()
	if err != nil || state.MSS <= 0 || state.Window < state.MSS || state.Unacked != 0 || state.Unsent != 0 || state.RTT <= 0 {
		t.Errorf("%+v, %v", state, err)
	}
	fillUp(t, a)
	if state, err = gauge.Read(); err != nil || state.Unsent == 0 || state.Unacked < state.Unsent {
		t.Errorf("nobody reads: %+v, %v", state, err)
	}
	go func() { _, _ = io.Copy(io.Discard, b) }()
	for range 500 {
		if state, err = gauge.Read(); err != nil || state.Unacked == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil || state.Unacked != 0 || state.Rate <= 0 || state.MinRTT <= 0 {
		t.Errorf("all was read: %+v, %v", state, err)
	}
	_ = a.Close()
	if _, err := gauge.Read(); err == nil {
		t.Error("a closed connection has a state")
	}
}

// TestGate: the gate opens immediately if little is unsent, when the other side
// has read, and after the time limit. It leaves no deadline behind.
func TestGate(t *testing.T) {
	a, b := loop(t)
	gate, err := NewGate(a)
	if err != nil {
		t.Fatal(err)
	}
	if err := gate.Wait(4096, 0); err != nil {
		t.Fatal(err)
	}
	fillUp(t, a)
	if err := gate.Wait(4096, time.Millisecond); err != nil {
		t.Errorf("the time is up: %v", err)
	}
	opened := make(chan error)
	go func() { opened <- gate.Wait(4096, 0) }()
	select {
	case err := <-opened:
		t.Fatalf("open before anything was read: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	go func() { _, _ = io.Copy(io.Discard, b) }()
	if err := <-opened; err != nil {
		t.Error(err)
	}
	if err := gate.Wait(4096, time.Hour); err != nil {
		t.Error(err)
	}
	if err := gate.Wait(4096, time.Nanosecond); err != nil {
		t.Error(err)
	}
	time.Sleep(time.Millisecond)
	if _, err := a.Write([]byte("x")); err != nil {
		t.Errorf("a deadline was left: %v", err)
	}
}
