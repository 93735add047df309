package identity

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// flood is a proxy that serves a listener, with a goroutine for each connection.
type flood struct {
	address string
	proxy   *Proxy
	came    atomic.Int64 // connections accepted
	inside  atomic.Int64 // running handshakes
	refused atomic.Int64
	crowded atomic.Int64
	done    sync.WaitGroup
}

func startFlood(t *testing.T, options Options) *flood {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &flood{address: listener.Addr().String(), proxy: newProxy(t, options, alice)}
	f.done.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			f.inside.Add(1)
			f.came.Add(1)
			f.done.Go(func() { f.serve(conn) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); f.done.Wait() })
	return f
}

func (f *flood) serve(conn net.Conn) {
	secure, err := f.proxy.Handshake(context.Background(), conn, nil)
	f.inside.Add(-1)
	if err != nil {
		f.refused.Add(1)
		if errors.Is(err, ErrCrowded) {
			f.crowded.Add(1)
		}
		return
	}
	_, _ = io.Copy(secure, secure)
	_ = secure.Close()
}

// settle waits until a condition holds, for up to 30 s.
func settle(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: never", what)
		}
	}
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestFlood checks that connections that are silent, or send the start of an endless
// message, occupy only the places of strangers. An agent still gets through.
func TestFlood(t *testing.T) {
	const limit, rounds = 16, 400
	f := startFlood(t, Options{MaxStrangers: limit, Timeout: time.Minute})
	agent := newAgent(t, secretA)
	begun := append([]byte{22, 3, 1, 0x3f, 0xff, 1, 0, 0xf0, 0}, make([]byte, 4000)...)
	goroutines, memory := runtime.NumGoroutine(), heap()
	var held []net.Conn
	t.Cleanup(func() {
		for _, conn := range held {
			_ = conn.Close()
		}
	})
	came := int64(0)
	for i := range rounds {
		came++
		conn, err := net.Dial("tcp", f.address)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
		if i%2 == 0 {
			_, _ = conn.Write(begun)
		}
		if i%100 == 50 {
			settle(t, "all are in or out", func() bool { return f.came.Load() == came && f.inside.Load() <= limit })
			came++
			client, err := net.Dial("tcp", f.address)
			if err != nil {
				t.Fatal(err)
			}
			secure, err := agent.Handshake(t.Context(), client)
			if err != nil {
				t.Fatalf("after %d others: %v", i, err)
			}
			if _, err := secure.Write([]byte("hello")); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(secure, make([]byte, 5)); err != nil {
				t.Fatalf("after %d others: %v", i, err)
			}
			_ = secure.Close()
		}
	}
	settle(t, "all but the last are dropped", func() bool { return f.refused.Load() == rounds-limit })
	if f.crowded.Load() != rounds-limit || f.inside.Load() != limit {
		t.Errorf("%d crowded out, %d inside", f.crowded.Load(), f.inside.Load())
	}
	// Two goroutines per place: the caller's, and one of crypto/tls.
	if n := runtime.NumGoroutine() - goroutines; n > 3*limit {
		t.Errorf("%d goroutines more", n)
	}
	// The connections held here cost memory, too: well below a kilobyte each.
	if now := heap(); now > memory+limit*64<<10+rounds<<10 {
		t.Errorf("%d kB more", (now-memory)>>10)
	}
	for i, conn := range held {
		_ = conn.(*net.TCPConn).CloseWrite() // so that the last ones are dropped, too
		if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("connection %d read %d bytes, %v", i, n, err)
		}
	}
}

// TestManyAgentsAtOnce checks that the handshakes of agents do not crowd out each
// other.
func TestManyAgentsAtOnce(t *testing.T) {
	const agents = 64
	f := startFlood(t, Options{MaxStrangers: agents})
	agent := newAgent(t, secretA)
	var group sync.WaitGroup
	for range agents {
		group.Go(func() {
			client, err := net.Dial("tcp", f.address)
			if err != nil {
				t.Error(err)
				return
			}
			secure, err := agent.Handshake(t.Context(), client)
			if err != nil {
				t.Error(err)
				return
			}
			_ = secure.Close()
		})
	}
	group.Wait()
	settle(t, "all have ended", func() bool { return f.inside.Load() == 0 })
	if f.refused.Load() != 0 {
		t.Errorf("%d refused", f.refused.Load())
	}
	if f.proxy.strangers.queue.Len() != 0 {
		t.Errorf("%d places are kept", f.proxy.strangers.queue.Len())
	}
}
