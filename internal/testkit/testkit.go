package testkit

import (
	"encoding/json"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// Patience is the maximum time that a test waits for an event. No test asserts
// how long something takes.
const Patience = 20 * time.Second

// Eventually waits until f returns true, and fails the test after Patience.
func Eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if f() {
			return
		}
	}
	t.Fatalf("did not come: %s", what)
}

// Records reads the records of one kind from a log that may still be written.
func Records[R any](t testing.TB, path, event string) (found []R) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		var head struct{ Event string }
		if err := json.Unmarshal([]byte(line), &head); err != nil {
			t.Fatalf("%s: %q: %v", path, line, err)
		}
		if head.Event != event {
			continue
		}
		var record R
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("%s: %q: %v", path, line, err)
		}
		found = append(found, record)
	}
	return found
}

// Descriptors returns the number of open descriptors of this process.
func Descriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// Serve accepts connections on a loopback address until the end of the test. It
// calls handle for each connection and closes it afterwards.
func Serve(t testing.TB, handle func(*net.TCPConn)) netip.AddrPort {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.AcceptTCP()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close() //nolint:errcheck // nothing is left to lose
				handle(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	address := listener.Addr().(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(address.Addr().Unmap(), address.Port())
}

// Echo starts a server that returns its input until the end of the stream.
// Start it before its clients, so that it ends after them.
func Echo(t testing.TB) netip.AddrPort {
	t.Helper()
	return Serve(t, func(conn *net.TCPConn) { _, _ = io.Copy(conn, conn) })
}

// Pair returns both ends of a TCP connection over the loopback interface.
func Pair(t testing.TB) (dialed, accepted *net.TCPConn) {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // it has served
	if dialed, err = net.DialTCP("tcp", nil, listener.Addr().(*net.TCPAddr)); err != nil {
		t.Fatal(err)
	}
	if accepted, err = listener.AcceptTCP(); err != nil {
		t.Fatal(err)
	}
	return dialed, accepted
}
