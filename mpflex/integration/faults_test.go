package integration

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mplab/mpflex/connlog"
)

// pathsOf returns the path records of an interface.
func pathsOf(t *testing.T, p *program, device string) (list []connlog.PathEvent) {
	t.Helper()
	for _, e := range records[connlog.PathEvent](t, p.log, "path") {
		if e.Interface == device {
			list = append(list, e)
		}
	}
	return list
}

// awaitPath waits until the last record of a path has this event.
func awaitPath(t *testing.T, p *program, device, what string) connlog.PathEvent {
	t.Helper()
	var last connlog.PathEvent
	eventually(t, device+" is "+what, func() bool {
		list := pathsOf(t, p, device)
		if len(list) > 0 {
			last = list[len(list)-1]
		}
		return last.What == what
	})
	return last
}

// TestInterfaceGoesAndReturns: the path ends with the interface's reason, is not tried
// while the interface cannot be used, and is attached again when it can.
func TestInterfaceGoesAndReturns(t *testing.T) {
	s := start(t, flex(false))
	for _, c := range []struct {
		name       string
		gone, back [][]string
		why        string
	}{
		{
			"down",
			[][]string{{"link", "set", "wlan0", "down"}}, nil,
			"the interface is not there, down, without carrier or without an address",
		},
		{
			"without address",
			[][]string{{"addr", "del", "10.64.1.2/24", "dev", "wlan0"}},
			[][]string{{"addr", "add", "10.64.1.2/24", "dev", "wlan0"}},
			"the interface is not there, down, without carrier or without an address",
		},
		{
			"an address of the other family",
			[][]string{{"-6", "addr", "add", "fd00:64:1::2/64", "dev", "wlan0", "nodad"}, {"addr", "del", "10.64.1.2/24", "dev", "wlan0"}},
			[][]string{{"addr", "add", "10.64.1.2/24", "dev", "wlan0"}, {"-6", "addr", "del", "fd00:64:1::2/64", "dev", "wlan0"}},
			"the interface has no IPv4 address, which the proxy has",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := awaitPath(t, s.agent, "wlan0", "attached").Incarnation
			told := len(pathsOf(t, s.agent, "wlan0"))
			for _, args := range c.gone {
				output(t, "phone", append([]string{"ip"}, args...)...)
			}
			if e := awaitPath(t, s.agent, "wlan0", "ended"); e.Error != c.why || e.Incarnation != before {
				t.Errorf("%+v", e)
			}
			time.Sleep(500 * time.Millisecond) // with retries by time there would be some attempts
			if all := pathsOf(t, s.agent, "wlan0")[told:]; len(all) != 1 {
				t.Errorf("told while it is gone: %+v", all)
			}
			for _, args := range c.back {
				output(t, "phone", append([]string{"ip"}, args...)...)
			}
			restore(t, "wlan0")
			awaitPath(t, s.agent, "wlan0", "attached")
			for _, e := range pathsOf(t, s.agent, "wlan0")[told+1:] {
				if e.What == "failed" && !strings.Contains(e.Error, "unreachable") { // the routes come after the interface
					t.Errorf("%+v", e)
				}
			}
		})
	}
}

// descriptors returns the number of a program's open descriptors.
func descriptors(t *testing.T, p *program) int {
	t.Helper()
	list, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "fd"))
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// dump ends a program by SIGQUIT and returns its goroutines.
func (p *program) dump(t *testing.T) []string {
	t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	<-p.ended
	p.ended = nil
	all := strings.Split(p.stderr.String(), "\n\ngoroutine ")
	if len(all) < 5 {
		t.Fatalf("no goroutines: %s", p.stderr)
	}
	return all
}

// TestFlappingInterface: a transfer continues correctly while an interface goes down
// and up every second. Each change is logged once, and no resource is leaked.
func TestFlappingInterface(t *testing.T) {
	private(t, func(t *testing.T, plain bool) {
		const flaps = 8
		s := start(t, flex(plain))
		sent := payload(5, 16<<20)
		over := make(chan struct{})
		serveOrigin(t, web, func(conn *net.TCPConn) {
			defer conn.Close()
			for part := range slices.Chunk(sent, 64<<10) {
				if _, err := conn.Write(part); err != nil {
					return
				}
				time.Sleep(25 * time.Millisecond)
			}
			<-over
		})
		awaitPath(t, s.agent, "wlan0", "attached")
		awaitPath(t, s.agent, "rmnet0", "attached")
		conn := dialPhone(t, web)
		received := make([]byte, len(sent))
		done := make(chan error, 1)
		go func() {
			_, err := io.ReadFull(conn, received)
			done <- err
		}()
		before := [2]int{descriptors(t, s.agent), descriptors(t, s.proxy)}
		for range flaps {
			output(t, "phone", "ip", "link", "set", "wlan0", "down")
			time.Sleep(500 * time.Millisecond)
			restore(t, "wlan0")
			time.Sleep(500 * time.Millisecond)
		}
		if err := <-done; err != nil || !slices.Equal(received, sent) {
			t.Errorf("wrong bytes, %v", err)
		}
		awaitPath(t, s.agent, "wlan0", "attached")
		told := map[string]int{}
		for _, e := range pathsOf(t, s.agent, "wlan0") {
			told[e.What]++
		}
		// An interface comes up in steps: up, then a route in each of two tables.
		if told["attached"] > flaps+1 || told["ended"] > flaps || told["failed"] > flaps {
			t.Errorf("told by the agent: %v", told)
		}
		for i, e := range pathsOf(t, s.agent, "rmnet0") {
			if i > 0 && e.What != "stalled" && e.What != "recovered" {
				t.Errorf("the other path: %+v", e)
			}
		}
		told = map[string]int{}
		for _, e := range pathsOf(t, s.proxy, "wlan0") {
			told[e.What]++
		}
		if told["attached"] > flaps+1 || told["ended"] > flaps || told["stalled"] > 2*flaps {
			t.Errorf("told by the proxy: %v", told)
		}
		eventually(t, "no descriptor more than before", func() bool {
			return descriptors(t, s.agent) <= before[0]+1 && descriptors(t, s.proxy) <= before[1]+2 // the transfer's sockets
		})
		conn.Close()
		close(over)
		for i, p := range []*program{s.agent, s.proxy} {
			name, count := []string{"agent", "proxy"}[i], map[string]int{}
			for _, g := range p.dump(t) {
				for _, f := range []string{"session.(*Path).read(", "session.(*Path).write(", "uplink.(*Uplink).keep(", "ifaces.(*Set).run("} {
					if strings.Contains(g, f) {
						count[f]++
					}
				}
			}
			if p == s.agent && count["session.(*Path).read("] == 0 { // the proxy has no paths any more
				t.Error("no path is found")
			}
			for f, n := range count {
				if n > 2 {
					t.Errorf("%s: %d goroutines in %s", name, n, f)
				}
			}
		}
	})
}

// TestProxyRestart restarts the proxy under load. All streams are reset. The log
// reports it once for the session and once in each stream's record. When the proxy is
// back, it carries new streams.
func TestProxyRestart(t *testing.T) {
	const each = 3
	const unknown = "the proxy does not know the session any more"
	const down, up, idle = "10.65.0.2:80", "10.65.0.2:443", "10.65.0.2:8080"
	for _, c := range []struct {
		name string
		end  func(*testing.T, *program)
		why  []string
	}{
		// On a slow machine the messages of an orderly end may arrive too late.
		{"in order", func(t *testing.T, p *program) { p.stop(t) }, []string{"the other side ended the session", unknown}},
		{"killed", func(_ *testing.T, p *program) {
			_ = p.cmd.Process.Kill()
			<-p.ended
			p.ended = nil
		}, []string{unknown}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, flex(false))
			awaitPath(t, s.agent, "wlan0", "attached")
			awaitPath(t, s.agent, "rmnet0", "attached")
			block := payload(1, 256<<10)
			serveOrigin(t, down, func(conn *net.TCPConn) {
				defer conn.Close()
				for _, err := conn.Write(block); err == nil; _, err = conn.Write(block) {
				}
			})
			serveOrigin(t, up, func(conn *net.TCPConn) {
				defer conn.Close()
				_, _ = conn.Write([]byte("x"))
				_, _ = io.Copy(io.Discard, conn)
			})
			serveOrigin(t, idle, echo)
			var ends sync.WaitGroup
			for _, address := range []string{down, up, idle} {
				for range each {
					conn := dialPhone(t, address)
					if address == idle {
						if _, err := conn.Write([]byte("x")); err != nil {
							t.Fatal(err)
						}
					}
					if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
						t.Fatal(err)
					}
					_ = conn.SetDeadline(time.Now().Add(patience))
					ends.Go(func() {
						var err error
						if address == up {
							for err == nil {
								_, err = conn.Write(block)
							}
						} else {
							_, err = io.Copy(io.Discard, conn)
						}
						if !errors.Is(err, syscall.ECONNRESET) {
							t.Errorf("%s: the connection ended with %v", address, err)
						}
					})
				}
			}
			c.end(t, s.proxy)
			startProxy(t, nil)
			ends.Wait()
			for _, address := range []string{down, up, idle} {
				for _, r := range connections(t, s.agent, address, each) {
					why, over := strings.CutPrefix(r.Error, "the session is over: ")
					if r.Status != connlog.Reset || !over || !slices.ContainsFunc(c.why, func(w string) bool { return strings.HasPrefix(why, w) }) {
						t.Errorf("%s: %s, %s", address, r.Status, r.Error)
					}
				}
			}
			all := records[connlog.SessionEnd](t, s.agent.log, "session")
			if len(all) != 1 || all[0].Streams != 3*each || !slices.ContainsFunc(c.why, func(w string) bool { return strings.HasPrefix(all[0].Error, w) }) || all[0].Session == "" {
				t.Errorf("%+v", all)
			}
			conn := dialPhone(t, idle)
			roundTrip(t, conn, payload(2, 100_000))
			told := map[string]int{}
			for _, e := range records[connlog.PathEvent](t, s.agent.log, "path") {
				told[e.Interface+" "+e.What+" "+e.Error]++
			}
			for what, n := range told {
				if n > 2 { // of the session before and of the one after
					t.Errorf("told %d times: %s", n, what)
				}
			}
		})
	}
}
