package proxy_test

import (
	"cmp"
	"context"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mplab/internal/testkit"
	"mplab/mpflex/config"
	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/forward/carrier"
	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/internal/transport/uplink"
)

// gate relays connections to a server. While it is shut, it returns no bytes from the
// server.
type gate struct {
	mu   sync.Mutex
	shut bool
	open sync.Cond
}

func (g *gate) pass(conn, server *net.TCPConn) {
	go func() {
		_, _ = io.Copy(server, conn)
		_ = server.Close()
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		g.mu.Lock()
		for g.shut {
			g.open.Wait()
		}
		g.mu.Unlock()
		if err != nil {
			return
		}
		if _, err := conn.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	g.open.Broadcast()
}

// TestRecordHasTheLastBytes: the record includes bytes that the session still holds
// when both ends of a stream were closed.
func TestRecordHasTheLastBytes(t *testing.T) {
	const short, long = 100 << 10, 4 << 20
	origin := func(size int) netip.AddrPort {
		return testkit.Serve(t, func(conn *net.TCPConn) {
			_, _ = conn.Read(make([]byte, 1))
			_, _ = conn.Write(make([]byte, size))
		})
	}
	shortOrigin, longOrigin := origin(short), origin(long)
	p := start(t, nil, "alice")
	g := &gate{}
	g.open.L = &g.mu
	between := testkit.Serve(t, func(conn *net.TCPConn) {
		dialer := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error { // so that few bytes are in flight
			return raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 128<<10) })
		}}
		server, err := dialer.Dial("tcp", p.Listening(config.MPFlexPlain).String())
		if err != nil {
			t.Error(err)
			return
		}
		g.pass(conn, server.(*net.TCPConn))
	})
	t.Cleanup(func() { g.set(false) })
	d := &carrier.Dialer{Streams: connect(t, between, secretOf("alice"), config.MPFlexPlain, session.Config{})}
	ask := func(conn *carrier.Conn) {
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
	}
	opened := func(origin netip.AddrPort) *carrier.Conn {
		conn, err := open(d, origin)
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	sizes := map[*carrier.Conn]int64{}
	for range 8 { // more than the kernel accepts at once
		sizes[opened(longOrigin)] = long
	}
	last := opened(shortOrigin)
	g.set(true)
	for conn := range sizes {
		ask(conn)
	}
	sizes[last] = short
	source := p.Status()
	unsent := func() int { return source.Status().Sessions[0].Unsent }
	testkit.Eventually(t, "a path that is full", func() bool {
		before := unsent()
		time.Sleep(50 * time.Millisecond)
		return before > 0 && unsent() == before
	})
	ask(last)
	testkit.Eventually(t, "the end of the connection to the origin", func() bool { return source.Status().Connections.Ended == 1 })
	if unsent() < short {
		t.Error("the session has sent all: the test shows nothing")
	}
	g.set(false)
	var reading sync.WaitGroup
	for conn, size := range sizes {
		reading.Go(func() {
			_ = conn.SetReadDeadline(time.Now().Add(testkit.Patience))
			if n, err := io.Copy(io.Discard, conn); err != nil || n != size {
				t.Errorf("%d bytes of %d, %v", n, size, err)
			}
			_ = conn.Close()
		})
	}
	reading.Wait()
	var got []connlog.Connection
	testkit.Eventually(t, "the records", func() bool {
		got = records[connlog.Connection](t, p, "connection")
		return len(got) == len(sizes)
	})
	for _, r := range got {
		size := map[netip.AddrPort]int64{shortOrigin: short, longOrigin: long}[r.Dst.AddrPort]
		if len(r.Paths) != 1 || r.Paths[0].BytesOut != size+1 || r.BytesDown != size || r.Status != connlog.Closed { // 1: the status
			t.Errorf("%+v", r)
		}
	}
}

// TestRecordOfSchemes: a table of schemes has a separate record, and is not logged as a
// connection without a destination.
func TestRecordOfSchemes(t *testing.T) {
	echo := testkit.Echo(t)
	p := start(t, nil, "alice")
	up := p.uplink(t, secretOf("alice"), config.MPFlex, session.Config{})
	if err := exchange(&carrier.Dialer{Streams: up}, echo, 10); err != nil {
		t.Fatal(err)
	}
	good := []byte("\x01\x00\x00\x00\x07\x01\x01\x06single\x01\x04wifi\x00") // spec.md, table of schemes
	if err := uplink.SendSchemes(t.Context(), up.Session(), good); err != nil {
		t.Fatal(err)
	}
	if err := uplink.SendSchemes(context.Background(), up.Session(), good[1:]); err == nil {
		t.Error("a table that is none was taken")
	}
	var got []connlog.Schemes
	testkit.Eventually(t, "both records", func() bool {
		got = records[connlog.Schemes](t, p, "schemes")
		return len(got) == 2
	})
	slices.SortFunc(got, func(a, b connlog.Schemes) int { return cmp.Compare(a.Error, b.Error) }) // each is written by its own stream
	for i, r := range got {
		if r.Client != "alice" || r.Session != up.ID().String() || r.Generation != 7 || (r.Error != "") != (i == 1) {
			t.Errorf("%+v", r)
		}
	}
	for _, r := range records[connlog.Connection](t, p, "connection") {
		if r.Dst.AddrPort != echo {
			t.Errorf("%+v", r)
		}
	}
}
