package identity

import (
	"context"
	"io"
	"net"
	"testing"
	"time"
)

// cannedConn is a connection on which some bytes arrive, and then the end.
type cannedConn struct {
	net.Conn // not used
	rest     []byte
	written  int
}

func (c *cannedConn) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *cannedConn) Write(b []byte) (int, error)     { c.written += len(b); return len(b), nil }
func (c *cannedConn) Close() error                    { return nil }
func (c *cannedConn) SetDeadline(time.Time) error     { return nil }
func (c *cannedConn) SetReadDeadline(time.Time) error { return nil }
func (c *cannedConn) SetWriteDeadline(time.Time) error {
	return nil
}

// clientHello returns the first bytes of a handshake.
func clientHello(f *testing.F, agent *Agent) []byte {
	client, server := net.Pipe()
	go func() { _, _ = agent.Handshake(context.Background(), client) }()
	b := make([]byte, 4096)
	n, err := server.Read(b)
	if err != nil {
		f.Fatal(err)
	}
	_ = server.Close()
	return b[:n]
}

// FuzzStranger: for any bytes of a stranger, the proxy sends no byte and accepts no
// client.
func FuzzStranger(f *testing.F) {
	f.Add(clientHello(f, newAgent(f, secretC)))
	f.Add([]byte{22, 3, 1, 0, 4, 1, 0, 0, 0})
	f.Add([]byte("GET / HTTP/1.1\r\n"))
	proxy := newProxy(f, Options{}, alice)
	f.Fuzz(func(t *testing.T, sent []byte) {
		conn := &cannedConn{rest: sent}
		if _, err := proxy.Handshake(context.Background(), conn, nil); err == nil || conn.written != 0 {
			t.Errorf("%d bytes, %v", conn.written, err)
		}
		if proxy.strangers.queue.Len() != 0 {
			t.Error("its place is kept")
		}
	})
}

// FuzzFalseProxy: the agent accepts no answer that is made without the proxy's key.
func FuzzFalseProxy(f *testing.F) {
	f.Add([]byte{22, 3, 3, 0, 4, 2, 0, 0, 0})
	f.Add([]byte{21, 3, 3, 0, 2, 2, 40})
	agent := newAgent(f, secretA)
	f.Fuzz(func(t *testing.T, sent []byte) {
		if _, err := agent.Handshake(context.Background(), &cannedConn{rest: sent}); err == nil {
			t.Error("taken for the proxy")
		}
	})
}

// FuzzServerName: an accepted server name is the same after decoding and encoding.
func FuzzServerName(f *testing.F) {
	f.Add(goldenName)
	f.Add("proxy.example.org")
	f.Fuzz(func(t *testing.T, text string) {
		name, ok := parseName(text)
		if !ok {
			return
		}
		if again := nameEncoding.EncodeToString(append(name.signed, name.tag...)); again != text {
			t.Errorf("%q is written %q", text, again)
		}
		if len(name.tag) != nameMAC || name.at.UnixMilli()>>(8*nameTime) != 0 {
			t.Errorf("%+v", name)
		}
	})
}
