package netx_test

import (
	"io"
	"net"
	"testing"
	"time"

	"mplab/internal/netx"
)

// pair returns the two ends of a connection.
func pair(t *testing.T) (near, far *net.TCPConn) {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if near, err = net.DialTCP("tcp", nil, listener.Addr().(*net.TCPAddr)); err != nil {
		t.Fatal(err)
	}
	if far, err = listener.AcceptTCP(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

func TestPeek(t *testing.T) {
	near, far := pair(t)
	later := time.Now().Add(time.Minute)
	buffer := make([]byte, 16)
	send := func(text string) {
		time.Sleep(time.Millisecond) // so that the other side may already be waiting
		if _, err := far.Write([]byte(text)); err != nil {
			t.Error(err)
		}
	}
	if n := netx.Peek(near, buffer, 0, time.Now().Add(time.Millisecond)); n != 0 {
		t.Errorf("%d bytes before any was sent", n)
	}
	go send("some")
	n := netx.Peek(near, buffer, 0, later)
	if n == 0 {
		t.Fatal("nothing came")
	}
	for n < 4 {
		n = netx.Peek(near, buffer, n, later)
	}
	go send(" more")
	for n < 9 {
		n = netx.Peek(near, buffer, n, later)
	}
	if string(buffer[:n]) != "some more" {
		t.Errorf("%q", buffer[:n])
	}
	if n := netx.Peek(near, buffer[:4], 4, later); n != 4 {
		t.Errorf("%d bytes in a full buffer", n)
	}
	if n := netx.Peek(near, buffer, 9, time.Now().Add(time.Millisecond)); n != 9 {
		t.Errorf("%d bytes when no more came", n)
	}
	far.Close()
	all, err := io.ReadAll(near)
	if err != nil || string(all) != "some more" {
		t.Errorf("%q was left, %v", all, err)
	}
	if n := netx.Peek(near, buffer, 0, later); n != 0 {
		t.Errorf("%d bytes at the end", n)
	}
}
