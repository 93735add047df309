package integration

import (
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mplab/mpflex/connlog"
)

// cramp limits a program to `more` descriptors above its current number.
func cramp(t *testing.T, p *program, more int) {
	t.Helper()
	open, err := os.ReadDir("/proc/" + pid(p) + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	var before unix.Rlimit
	if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		t.Fatal(err)
	}
	limit := unix.Rlimit{Cur: uint64(len(open) + more), Max: before.Max}
	if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_NOFILE, &limit, nil); err != nil {
		t.Fatal(err)
	}
}

// lives checks that a connection to an echo carries bytes.
func lives(t *testing.T, conn *net.TCPConn, text string) {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := conn.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != text {
		t.Fatalf("%q, %v", got, err)
	}
}

// listenerTroubles returns the listener records in a program's log.
func listenerTroubles(t *testing.T, p *program) []connlog.Listener {
	return records[connlog.Listener](t, p.log, "listener")
}

// TestAgentWithoutDescriptors: applications wait and are all served in the end. Those
// already served are not affected. The log has one record.
func TestAgentWithoutDescriptors(t *testing.T) {
	s := start(t, flex(false))
	serveOrigin(t, web, echo)
	attached(t, s.agent)
	old := dialPhone(t, web)
	lives(t, old, "before")
	cramp(t, s.agent, 6)

	var holding []*net.TCPConn
	for range 30 {
		holding = append(holding, dialPhone(t, web))
	}
	eventually(t, "a record of the listener", func() bool { return len(listenerTroubles(t, s.agent)) > 0 })
	lives(t, old, "meanwhile")
	var all sync.WaitGroup
	for i, conn := range holding {
		all.Go(func() { // each waits until served ones end
			roundTrip(t, conn, payload(uint64(i), 10_000))
			conn.Close()
		})
	}
	all.Wait()
	lives(t, old, "after")
	roundTrip(t, dialPhone(t, web), payload(99, 100_000))
	troubles := listenerTroubles(t, s.agent)
	if len(troubles) != 1 || !strings.Contains(troubles[0].Error, "too many open files") || troubles[0].Address.String() != "127.0.0.1:3128" {
		t.Errorf("%+v", troubles)
	}
}

// TestProxyWithoutDescriptors: connections that need a descriptor are reset, with the
// reason in the log. Those already served continue. Further ones are served when there
// are descriptors again.
func TestProxyWithoutDescriptors(t *testing.T) {
	s := start(t, flex(false))
	serveOrigin(t, web, echo)
	attached(t, s.agent)
	old := dialPhone(t, web)
	lives(t, old, "before")
	cramp(t, s.proxy, 6)

	var served []*net.TCPConn
	for refused := 0; refused < 10; {
		conn, err := dialFrom(t, "phone", web)
		if err == nil {
			defer conn.Close()
			_, err = conn.Write([]byte("x"))
		}
		if err == nil {
			_, err = io.ReadFull(conn, make([]byte, 1))
		}
		if err == nil {
			served = append(served, conn)
		} else {
			refused++
		}
	}
	if len(served) == 0 || len(served) > 6 {
		t.Fatalf("%d connections were served", len(served))
	}
	lives(t, old, "meanwhile")
	for _, c := range connections(t, s.proxy, web, 10) {
		if c.Status != connlog.Unreachable || !strings.Contains(c.Error, "too many open files") {
			t.Errorf("%+v", c)
		}
	}

	for range 3 { // further connections, such as those of paths
		stranger, err := dialFrom(t, "phone", "10.64.3.2:7003")
		if err != nil {
			t.Fatal(err)
		}
		defer stranger.Close()
	}
	eventually(t, "a record of the listener", func() bool { return len(listenerTroubles(t, s.proxy)) > 0 })
	lives(t, old, "still")
	for _, conn := range served {
		lives(t, conn, "served")
		conn.Close()
	}
	eventually(t, "a connection that is served", func() bool {
		conn, err := dialFrom(t, "phone", web)
		if err != nil {
			return false
		}
		defer conn.Close()
		if _, err = conn.Write([]byte("x")); err == nil {
			_, err = io.ReadFull(conn, make([]byte, 1))
		}
		return err == nil
	})
	lives(t, old, "after")
	roundTrip(t, dialPhone(t, web), payload(99, 100_000))
	if troubles := listenerTroubles(t, s.proxy); len(troubles) != 1 || !strings.Contains(troubles[0].Error, "too many open files") {
		t.Errorf("%+v", troubles)
	}
}
