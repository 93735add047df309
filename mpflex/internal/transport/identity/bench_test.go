package identity

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
)

func BenchmarkHandshake(b *testing.B) {
	agent, proxy := newAgent(b, secretA), newProxy(b, Options{}, alice)
	b.ReportAllocs()
	for b.Loop() {
		client, server := net.Pipe()
		done := serve(proxy, server)
		if _, err := agent.Handshake(b.Context(), client); err != nil {
			b.Fatal(err)
		}
		if got := <-done; got.err != nil {
			b.Fatal(got.err)
		}
		_ = client.Close()
	}
}

// BenchmarkStranger measures the cost of a complete ClientHello that names no client,
// for a number of clients to compare it with.
func BenchmarkStranger(b *testing.B) {
	for name, clients := range map[string]int{"1 client": 1, "100 clients": 100} {
		b.Run(name, func(b *testing.B) {
			credentials := make([]Credential, clients)
			for i := range credentials {
				credentials[i].Secret = append([]byte{byte(i)}, secretA...)
			}
			proxy := newProxy(b, Options{}, credentials...)
			client, server := net.Pipe()
			go func() { _, _ = newAgent(b, secretB).Handshake(context.Background(), client) }()
			hello := make([]byte, 4096)
			n, err := server.Read(hello)
			if err != nil {
				b.Fatal(err)
			}
			_ = server.Close()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := proxy.Handshake(context.Background(), &cannedConn{Conn: server, rest: hello[:n]}, nil); !errors.Is(err, ErrStranger) {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkThroughput measures one direction of a connection over loopback, in messages
// of one record. Both ends are on this machine.
func BenchmarkThroughput(b *testing.B) {
	atAgent, atProxy := meet(b, newAgent(b, secretA), newProxy(b, Options{}, alice))
	message := make([]byte, 16384)
	b.SetBytes(int64(len(message)))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, atAgent)
	}()
	for b.Loop() {
		if _, err := atProxy.Write(message); err != nil {
			b.Fatal(err)
		}
	}
	_ = atProxy.Close()
	<-done
}
