package netx

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"
)

// resetAfter returns a connection whose other end has sent something and then
// reset it.
func resetAfter(t *testing.T, said string) *net.TCPConn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Write([]byte(said)); err != nil {
		t.Fatal(err)
	}
	tcp := conn.(*net.TCPConn)
	if _, err := io.ReadFull(tcp, make([]byte, len(said))); err != nil {
		t.Fatal(err)
	}
	Abort(other.(*net.TCPConn))
	for begun := time.Now(); !WasReset(tcp); time.Sleep(time.Millisecond) {
		if time.Since(begun) > 10*time.Second {
			t.Fatal("the reset does not come")
		}
	}
	return tcp
}

// TestResetIsNoEnd: earlier checks of a connection never turn a reset into an
// end of the stream.
func TestResetIsNoEnd(t *testing.T) {
	conn := resetAfter(t, "x")
	reader, err := NewReader(conn)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	if _, err := reader.Read(func() [][]byte { return [][]byte{b} }, func() {}); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a reader: %v", err)
	}
	conn = resetAfter(t, "x")
	if n := ReadNow(conn, make([]byte, 1)); n != 0 {
		t.Errorf("%d bytes", n)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after ReadNow: %v", err)
	}
	conn = resetAfter(t, "x")
	if n := Peek(conn, make([]byte, 1), 0, time.Now().Add(10*time.Second)); n != 0 {
		t.Errorf("%d bytes", n)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after Peek: %v", err)
	}
}

// TestWasReset: an end of stream is not a reset.
func TestWasReset(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = other.Close()
	if _, err := conn.Read(make([]byte, 1)); err != io.EOF || WasReset(conn.(*net.TCPConn)) {
		t.Errorf("%v", err)
	}
}
