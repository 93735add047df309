package socks

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"mplab/internal/netx"
	"mplab/internal/testkit"
	"mplab/mpflex/internal/forward/relay"
)

// serve runs a server on the loopback interface until the end of the test. It then
// checks for leaked goroutines.
func serve(t *testing.T, server *Server) netip.AddrPort {
	t.Helper()
	goroutines := runtime.NumGoroutine()
	listener, err := netx.Options{}.Listen(netip.AddrPortFrom(DefaultListen.Addr(), 0))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { server.Serve(ctx, listener) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		testkit.Eventually(t, "all goroutines ended", func() bool { return runtime.NumGoroutine() <= goroutines })
	})
	return netx.AddrPort(listener.Addr())
}

// originName is the only domain that the servers of the tests know.
const originName = "origin.test"

// direct is a handler that connects to the destination itself. It replies at once or
// after the dial.
func direct(early bool) func(context.Context, Request, *net.TCPConn, func(Code) error) {
	return func(ctx context.Context, request Request, conn *net.TCPConn, reply func(Code) error) {
		destination := request.Destination.AddrPort()
		if request.Destination.Domain == originName {
			destination = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), request.Destination.Port)
		}
		if !destination.IsValid() {
			_ = reply(HostUnreachable)
			return
		}
		if early {
			_ = reply(Succeeded)
		}
		onward, err := netx.Options{}.Dial(ctx, destination)
		if err != nil {
			if errors.Is(err, syscall.ECONNREFUSED) {
				_ = reply(ConnectionRefused)
			}
			return
		}
		if !early {
			_ = reply(Succeeded)
		}
		session := &relay.Session{A: conn, B: onward}
		stop := context.AfterFunc(ctx, func() { session.Abort(relay.ErrShutdown) })
		defer stop()
		_ = session.Run()
	}
}

// closedPort returns an address without a listener.
func closedPort(t *testing.T) netip.AddrPort {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return netx.AddrPort(listener.Addr())
}

// dial opens a connection to a server and sends bytes.
func dial(t *testing.T, server netip.AddrPort, sent string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", server.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(testkit.Patience))
	if _, err := io.WriteString(conn, sent); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// greeting offers no authentication.
const greeting = "\x05\x01\x00"

// request returns a request for an address, without the greeting.
func request(what command, address netip.AddrPort) string {
	return string(appendMessage(nil, byte(what), FromAddrPort(address)))
}
