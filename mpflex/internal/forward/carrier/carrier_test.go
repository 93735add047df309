package carrier

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"mplab/internal/netx"
	"mplab/internal/testkit"
	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/forward/relay"
	"mplab/mpflex/wire"
)

var (
	secret      = bytes.Repeat([]byte{'c'}, 32)
	destination = netip.MustParseAddrPort("192.0.2.1:80")
)

// dialer returns the dialer of a proxy that answers each hello.
func dialer(t *testing.T, answer func(*net.TCPConn, wire.Hello)) *Dialer {
	t.Helper()
	return &Dialer{Secret: secret, Proxy: testkit.Serve(t, func(conn *net.TCPConn) {
		hello, _, err := wire.ReadHello(conn, secret)
		if err != nil {
			t.Errorf("the proxy got %v", err)
			return
		}
		answer(conn, hello)
	})}
}

// status answers with a status.
func status(s wire.Status, secret []byte) func(*net.TCPConn, wire.Hello) {
	return func(conn *net.TCPConn, hello wire.Hello) {
		_, _ = conn.Write(s.Append(nil, secret, hello.Nonce))
		_, _ = io.Copy(io.Discard, conn)
	}
}

func open(t *testing.T, d *Dialer) *Conn {
	t.Helper()
	conn, err := d.Open(t.Context(), Request{Command: wire.Connect, Destination: destination})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestHalfClose: bytes that the application has sent leave with the hello. After the end of
// its stream, answers still arrive.
func TestHalfClose(t *testing.T) {
	source := netip.MustParseAddrPort("127.0.0.1:5000")
	d := dialer(t, func(conn *net.TCPConn, hello wire.Hello) {
		if hello.Command != wire.Connect || hello.Source != source || hello.Destination != destination {
			t.Errorf("%+v", hello)
		}
		_, _ = conn.Write(wire.OK.Append(nil, secret, hello.Nonce))
		all, err := io.ReadAll(conn)
		if err != nil {
			t.Error(err)
		}
		_, _ = conn.Write(bytes.ToUpper(all))
	})
	application, accepted := testkit.Pair(t)
	defer application.Close() //nolint:errcheck // nothing is left to lose
	defer accepted.Close()    //nolint:errcheck // nothing is left to lose
	if _, err := application.Write([]byte("early ")); err != nil {
		t.Fatal(err)
	}
	if n := netx.Peek(accepted, make([]byte, 10), 0, time.Now().Add(testkit.Patience)); n != 6 {
		t.Fatalf("%d bytes have arrived", n)
	}
	conn, err := d.Open(t.Context(), Request{Command: wire.Connect, Source: source, Destination: destination, First: []byte("first "), Early: accepted})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // nothing is left to lose
	if conn.Early != 12 {
		t.Errorf("%d bytes left with the hello", conn.Early)
	}
	if err := conn.Answer(); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("late")); err != nil {
		t.Fatal(err)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); string(got) != "FIRST EARLY LATE" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	var record connlog.Connection
	conn.Describe(&record)
	if record.Remote.AddrPort != d.Proxy || record.Local.AddrPort != netx.AddrPort(conn.LocalAddr()) || record.Multipath || record.Subflows != 1 {
		t.Errorf("%+v", record)
	}
}

// TestAnswers: an answer other than OK is an error, and the log records it as its kind.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(*net.TCPConn, wire.Hello)
		want   string // in the error
		status connlog.Status
	}{
		{"refused", status(wire.Refused, secret), wire.Refused.String(), connlog.Refused},
		{"denied", status(wire.Denied, secret), wire.Denied.String(), connlog.Refused},
		{"unreachable", status(wire.Unreachable, secret), wire.Unreachable.String(), connlog.Unreachable},
		{"timeout", status(wire.Timeout, secret), wire.Timeout.String(), connlog.Timeout},
		{"of another secret", status(wire.OK, bytes.Repeat([]byte{'x'}, 32)), wire.ErrMAC.Error(), connlog.Refused},
		{"no answer", func(*net.TCPConn, wire.Hello) {}, ErrNoAnswer.Error(), connlog.Refused},
		{"reset", func(conn *net.TCPConn, _ wire.Hello) { netx.Abort(conn) }, ErrNoAnswer.Error(), connlog.Refused},
		{"cut short", func(conn *net.TCPConn, hello wire.Hello) {
			_, _ = conn.Write(wire.OK.Append(nil, secret, hello.Nonce)[:10])
		}, ErrNoAnswer.Error(), connlog.Refused},
		{"another protocol", func(conn *net.TCPConn, _ wire.Hello) {
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n"+strings.Repeat("x", 100))
		}, wire.ErrFormat.Error(), connlog.Refused},
	} {
		err := open(t, dialer(t, c.answer)).Answer()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if got, text := Outcome(err); got != c.status || text != err.Error() {
			t.Errorf("%s is logged as %s: %s", c.name, got, text)
		}
	}
	if got, text := Outcome(nil); got != connlog.Closed || text != "" {
		t.Errorf("an orderly end is logged as %s: %s", got, text)
	}
}

// TestReplayedAnswer: an answer to another hello is refused.
func TestReplayedAnswer(t *testing.T) {
	var before wire.Hello
	d := dialer(t, func(conn *net.TCPConn, hello wire.Hello) {
		if before.Nonce == (wire.Hello{}).Nonce {
			before = hello
		}
		status(wire.OK, secret)(conn, before)
	})
	if err := open(t, d).Answer(); err != nil {
		t.Fatal(err)
	}
	if err := open(t, d).Answer(); !errors.Is(err, wire.ErrMAC) {
		t.Errorf("the answer to an earlier hello: %v", err)
	}
}

// TestClocksDiffer: after an answer about the clocks, the next hello has the proxy's time.
func TestClocksDiffer(t *testing.T) {
	ahead := time.Hour
	d := dialer(t, func(conn *net.TCPConn, hello wire.Hello) {
		now := time.Now().Add(-ahead)
		if off := hello.Time.Sub(now); off > time.Minute {
			_, _ = conn.Write(wire.AppendSkewed(nil, secret, hello.Nonce, now))
			return
		}
		status(wire.OK, secret)(conn, hello)
	})
	err := open(t, d).Answer()
	var skew *wire.SkewError
	if !errors.As(err, &skew) || skew.Ahead.Round(time.Minute) != ahead {
		t.Fatal(err)
	}
	if got, _ := Outcome(err); got != connlog.Refused {
		t.Error(got)
	}
	if err := open(t, d).Answer(); err != nil {
		t.Errorf("the next connection: %v", err)
	}
}

// TestOpenFails: a proxy that is not there is unreachable. A cancelled open is the end of
// the program.
func TestOpenFails(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := netip.MustParseAddrPort(listener.Addr().String())
	_ = listener.Close()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	d := &Dialer{Proxy: nobody, Secret: secret}
	_, err = d.Open(t.Context(), Request{Command: wire.Echo})
	if status, _ := Outcome(err); !errors.Is(err, ErrProxy) || !errors.Is(err, syscall.ECONNREFUSED) || status != connlog.Unreachable {
		t.Errorf("%s: %v", status, err)
	}
	d.Proxy = silent(t)
	_, err = d.Open(cancelled, Request{Command: wire.Echo})
	if status, _ := Outcome(err); !errors.Is(err, relay.ErrShutdown) || status != connlog.Shutdown {
		t.Errorf("%s: %v", status, err)
	}
	_, err = OpenDirect(t.Context(), netx.Options{}, nobody)
	if status, _ := Outcome(err); !errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, ErrProxy) || status != connlog.Reset {
		t.Errorf("%s: %v", status, err)
	}
	if _, err = OpenDirect(cancelled, netx.Options{}, d.Proxy); !errors.Is(err, relay.ErrShutdown) {
		t.Error(err)
	}
}

// silent returns an address that does not answer to connections: its queue is full.
func silent(t *testing.T) netip.AddrPort {
	t.Helper()
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	raw, err := listener.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) { err = syscall.Listen(int(fd), 0) }); err != nil {
		t.Fatal(err)
	}
	waiting, err := net.Dial("tcp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = waiting.Close() })
	return netx.AddrPort(listener.Addr())
}

// TestDirect: a direct connection needs no answer.
func TestDirect(t *testing.T) {
	conn, err := OpenDirect(t.Context(), netx.Options{}, testkit.Echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // nothing is left to lose
	if err := conn.Answer(); err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Write([]byte("hello"))
	_ = conn.CloseWrite()
	if got, err := io.ReadAll(conn); string(got) != "hello" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
