package muxed

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"testing"

	"mplab/internal/netx"
)

var anyPort = netip.MustParseAddrPort("127.0.0.1:0")

// pair starts a server and a client whose connections all have the given destination.
func pair(t *testing.T, destination netip.AddrPort, private bool) (address string) {
	t.Helper()
	server, err := NewServer(Config{Listen: anyPort, Private: private})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		wait.Wait()
	})
	wait.Go(func() { server.Run(ctx) })
	client, err := NewClient(ctx, Config{Listen: anyPort, Server: server.Listening(), Private: private})
	if err != nil {
		t.Fatal(err)
	}
	client.Destination = func(*net.TCPConn) (netip.AddrPort, error) { return destination, nil }
	wait.Go(func() { client.Run(ctx) })
	return client.Listening().String()
}

// echo returns its input after the other side has closed its sending side.
func echo(t *testing.T) netip.AddrPort {
	t.Helper()
	listener, err := netx.Options{}.Listen(anyPort)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close() //nolint:errcheck // the test reads to the end
				if all, err := io.ReadAll(conn); err == nil {
					_, _ = conn.Write(all)
				}
			}()
		}
	}()
	return netx.AddrPort(listener.Addr())
}

func TestBytesAndHalfCloseOfManyStreams(t *testing.T) {
	t.Run("plain", func(t *testing.T) { manyStreams(t, pair(t, echo(t), false)) })
	t.Run("TLS", func(t *testing.T) { manyStreams(t, pair(t, echo(t), true)) })
}

func manyStreams(t *testing.T, address string) {
	t.Helper()
	var wait sync.WaitGroup
	for i := range 20 {
		wait.Go(func() {
			sent := make([]byte, 1+i*100_000)
			_, _ = rand.NewChaCha8([32]byte{byte(i)}).Read(sent)
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close() //nolint:errcheck // read to the end
			if _, err := conn.Write(sent); err != nil {
				t.Error(err)
			}
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Error(err)
			}
			if got, err := io.ReadAll(conn); err != nil || !bytes.Equal(got, sent) {
				t.Errorf("stream %d: %d of %d bytes came back, %v", i, len(got), len(sent), err)
			}
		})
	}
	wait.Wait()
}

// TestUnreachableDestination checks that a destination without a server ends the
// application's connection.
func TestUnreachableDestination(t *testing.T) {
	destination := netip.MustParseAddrPort("127.0.0.1:1") // tcpmux
	conn, err := net.Dial("tcp", pair(t, destination, false))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // nothing was sent that matters
	_, _ = conn.Write([]byte("anyone there?"))
	if got, _ := io.ReadAll(conn); len(got) != 0 {
		t.Errorf("%d bytes from nobody", len(got))
	}
}
