package proxy_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"mplab/internal/testkit"
	"mplab/mpflex/config"
	"mplab/mpflex/internal/forward/carrier"
	"mplab/mpflex/internal/transport/frame"
	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/wire"
)

// TestAgentObeysWindow: an upload stays within the proxy's window, which is smaller
// than the agent's.
func TestAgentObeysWindow(t *testing.T) {
	echo := testkit.Echo(t)
	p := start(t, func(c *config.Proxy) { c.Session.WindowBytes = 65536 }, "alice")
	up := p.uplink(t, secretOf("alice"), config.MPFlex, session.Config{})
	d := &carrier.Dialer{Streams: up}
	id := up.ID()
	other, err := open(d, echo)
	if err != nil {
		t.Fatal(err)
	}
	if err := exchange(d, echo, 300_000); err != nil {
		t.Errorf("an upload of 300 kB: %v", err)
	}
	if err := echoed(other, 100); err != nil || up.ID() != id {
		t.Errorf("another stream of the session: %v; session %s, before %s", err, up.ID(), id)
	}
}

// TestAgentObeysMaxStreams: a stream beyond the proxy's limit for the client is not
// opened.
func TestAgentObeysMaxStreams(t *testing.T) {
	echo := testkit.Echo(t)
	for name, change := range map[string]func(c *config.Proxy){
		"session": func(c *config.Proxy) { c.Session.MaxStreams = 4 },
		"client":  func(c *config.Proxy) { c.PerClient.Streams = 4 },
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, change, "alice")
			d := p.dialer(t, secretOf("alice"), config.MPFlex)
			for range 4 {
				conn, err := open(d, echo)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close() //nolint:errcheck // nothing is left to lose
			}
			if _, err := open(d, echo); !errors.Is(err, session.ErrStreams) {
				t.Errorf("the fifth of four streams: %v", err)
			}
		})
	}
}

// TestProxyObeysSettings: the proxy sends a stream within the window of the attach,
// accepts bytes independently of that window, and pings a path after the keep-alive
// period of its attach.
func TestProxyObeysSettings(t *testing.T) {
	const window, upload, keepalive = 2048, 100_000, 100 * time.Millisecond
	echo := testkit.Echo(t)
	p := start(t, nil, "alice")
	secret := secretOf("alice")
	a := wire.Attach{Fresh: true, Settings: wire.Settings{MaxStreams: 10, InitialWindow: window, KeepAlive: keepalive}}
	conn, binding, err := p.introduce(config.MPFlex, secret, secret, &a)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // nothing is left to lose
	answer, err := wire.ReadAttached(conn, secret, binding, a.Nonce)
	if err != nil || answer.Status != wire.OK || answer.Settings.InitialWindow < upload || answer.Settings.KeepAlive != keepalive {
		t.Fatalf("%+v, %v", answer, err)
	}
	first := wire.Open{Command: wire.Connect, Destination: echo}.Append(nil)
	first = append(first, make([]byte, upload)...)
	for at := 0; at < len(first); at += 50_000 {
		part := first[at:min(at+50_000, len(first))]
		h := frame.Header{Type: frame.Data, Size: uint16(len(part)), Stream: 1, Seq: uint32(at)}
		if _, err := conn.Write(append(h.Append(nil), part...)); err != nil {
			t.Fatal(err)
		}
	}
	for came, pings := 0, 0; came < window || pings < 3; {
		var head [frame.HeaderSize]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			t.Fatalf("%d bytes, %d pings: %v", came, pings, err)
		}
		h, err := frame.Parse(&head)
		if err != nil {
			t.Fatal(err)
		}
		payload := make([]byte, h.Size)
		if _, err := io.ReadFull(conn, payload); err != nil {
			t.Fatal(err)
		}
		switch h.Type {
		case frame.Data:
			came += int(h.Size)
		case frame.Ping:
			pings++
			if _, err := conn.Write(append(frame.Header{Type: frame.Pong, Size: 8}.Append(nil), payload...)); err != nil {
				t.Fatal(err)
			}
		}
		if came > window {
			t.Fatalf("%d bytes came, the window has %d", came, window)
		}
	}
}

// TestPathNumbers: a session has 64 paths. An attach with a higher number is refused.
func TestPathNumbers(t *testing.T) {
	p := start(t, nil, "alice")
	secret := secretOf("alice")
	for path, want := range map[uint8]wire.Status{0: wire.OK, wire.MaxPaths - 1: wire.OK, wire.MaxPaths: wire.Bad, 255: wire.Bad} {
		if got, err := p.attach(t, config.MPFlex, secret, secret, wire.Attach{Fresh: true, Path: path}); err != nil || got != want {
			t.Errorf("path %d: %s, want %s; %v", path, got, want, err)
		}
	}
}
