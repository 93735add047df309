package integration

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mplab/mpflex/connlog"
)

const web = "10.65.0.2:80"

// echo returns what it reads and closes when the other side has.
func echo(conn *net.TCPConn) {
	defer conn.Close()
	_, _ = io.Copy(conn, conn)
}

// payload is n bytes that differ from one seed to the next.
func payload(seed uint64, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(b)
	return b
}

// roundTrip sends bytes, half-closes, and expects them back.
func roundTrip(t testing.TB, conn *net.TCPConn, sent []byte) {
	t.Helper()
	go func() {
		_, _ = conn.Write(sent)
		_ = conn.CloseWrite()
	}()
	received, err := io.ReadAll(conn)
	if err != nil || sha256.Sum256(received) != sha256.Sum256(sent) {
		t.Errorf("%d bytes sent, %d came back, equal: %v, error: %v", len(sent), len(received), bytes.Equal(sent, received), err)
	}
}

// exchangeOnce connects, says something or not, reads to the end and returns
// the error of whichever of these came first: a reset may be as early as the
// connect.
func exchangeOnce(t testing.TB, address string, say bool) error {
	t.Helper()
	conn, err := dialFrom(t, "phone", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if say {
		if _, err := conn.Write([]byte("anyone there?")); err != nil {
			return err
		}
	}
	_, err = io.ReadAll(conn)
	return err
}

func TestRedirectedConnectionOverTwoPaths(t *testing.T) {
	s := start(t, nil)
	serveOrigin(t, web, echo)
	conn := dialPhone(t, web)
	const size = 4 << 20
	roundTrip(t, conn, payload(1, size))
	conn.Close()

	got := connections(t, s.agent, web, 1)[0]
	if got.Status != connlog.Closed || got.BytesUp != size || got.BytesDown != size || !got.Multipath || got.Fallback || got.Subflows != 2 {
		t.Errorf("agent: %+v", got)
	}
	if got.UID != int64(os.Getuid()) || got.PID != os.Getpid() || got.Process == "" {
		t.Errorf("the application is uid %d, pid %d (%q); it should be %d, %d", got.UID, got.PID, got.Process, os.Getuid(), os.Getpid())
	}
	if got.Src.String() != conn.LocalAddr().String() || got.Local.Addr().String() != "10.64.1.2" || got.Remote.String() != "10.64.3.2:7002" {
		t.Errorf("agent: addresses: %+v", got)
	}
	there := connections(t, s.proxy, web, 1)[0]
	if there.Status != connlog.Closed || there.BytesUp != size || there.BytesDown != size || there.Subflows != 2 || there.Fallback {
		t.Errorf("proxy: %+v", there)
	}
	if there.Src != got.Src || there.Remote.String() != got.Local.String() {
		t.Errorf("the logs disagree: %+v %+v", there, got)
	}
}

func TestSinglePathIsBoundToItsDevice(t *testing.T) {
	for device, address := range map[string]string{"wlan0": "10.64.1.2", "rmnet0": "10.64.2.2"} {
		t.Run(device, func(t *testing.T) {
			s := start(t, values{"transport": "tcp", "device": device, "proxy": "10.64.3.2:7001"})
			serveOrigin(t, web, echo)
			roundTrip(t, dialPhone(t, web), payload(2, 100_000))
			got := connections(t, s.agent, web, 1)[0]
			if got.Local.Addr().String() != address || got.Device != device || got.Multipath || got.Fallback || got.Subflows != 1 || got.Transport != "tcp" {
				t.Errorf("agent: %+v", got)
			}
			if there := connections(t, s.proxy, web, 1)[0]; there.Transport != "tcp" || there.Multipath || there.Fallback {
				t.Errorf("proxy: %+v", there)
			}
		})
	}
}

// TestConnectionsTakeDevicesInTurn: each connection is bound to the next
// device, and to another one while the network of that is gone.
func TestConnectionsTakeDevicesInTurn(t *testing.T) {
	s := start(t, values{"transport": "tcp", "devices": []string{"wlan0", "rmnet0"}, "proxy": "10.64.3.2:7001"})
	t.Cleanup(func() { restore(t, "wlan0") })
	serveOrigin(t, web, echo)
	for range 4 {
		conn := dialPhone(t, web)
		roundTrip(t, conn, payload(2, 10_000))
		conn.Close()
	}
	output(t, "phone", "ip", "link", "set", "wlan0", "down")
	for range 2 {
		conn := dialPhone(t, web)
		roundTrip(t, conn, payload(2, 10_000))
		conn.Close()
	}
	found := connections(t, s.agent, web, 6)
	slices.SortFunc(found, func(a, b connlog.Connection) int { return cmp.Compare(a.ID, b.ID) })
	for i, address := range []string{"10.64.1.2", "10.64.2.2", "10.64.1.2", "10.64.2.2", "10.64.2.2", "10.64.2.2"} {
		device := map[string]string{"10.64.1.2": "wlan0", "10.64.2.2": "rmnet0"}[address]
		if got := found[i]; got.Local.Addr().String() != address || got.Device != device || got.Status != connlog.Closed {
			t.Errorf("connection %d: %+v", i, got)
		}
	}
}

// TestDefaultRoute: a connection ends with the network that it began on, the
// next one takes what there is, and WiFi again when it is back; one over the
// other network outlives that.
func TestDefaultRoute(t *testing.T) {
	s := start(t, values{"transport": "tcp", "proxy": "10.64.3.2:7001"})
	t.Cleanup(func() { restore(t, "wlan0") })
	serveOrigin(t, web, echo)
	begin := func() *net.TCPConn {
		conn := dialPhone(t, web)
		say(t, conn)
		return conn
	}
	wifi := begin()
	output(t, "phone", "ip", "link", "set", "wlan0", "down")
	_ = wifi.SetReadDeadline(time.Now().Add(patience))
	if _, err := wifi.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("WiFi is gone; the application saw %v, not a reset", err)
	}
	lost := connections(t, s.agent, web, 1)[0]
	if lost.Local.Addr().String() != "10.64.1.2" || lost.Status != connlog.Reset || !strings.Contains(lost.Error, "10.64.1.2 of wlan0") {
		t.Errorf("%s from %s: %s", lost.Status, lost.Local, lost.Error)
	}
	cellular := begin()
	restore(t, "wlan0")
	again := begin()
	say(t, cellular)
	_ = cellular.Close()
	connections(t, s.agent, web, 2)
	_ = again.Close()
	for i, address := range []string{"10.64.1.2", "10.64.2.2", "10.64.1.2"} {
		if got := connections(t, s.agent, web, 3)[i]; got.Local.Addr().String() != address || (i > 0 && got.Status != connlog.Closed) {
			t.Errorf("connection %d: %s from %s, %s", i, got.Status, got.Local, got.Error)
		}
	}
}

// say sends a byte and waits for its echo; the connection stays open.
func say(t *testing.T, conn *net.TCPConn) {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := conn.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

func TestFallbackIsSeen(t *testing.T) {
	s := start(t, values{"proxy": "10.64.3.2:7001"}) // MPTCP asked of the plain listener
	serveOrigin(t, web, echo)
	roundTrip(t, dialPhone(t, web), payload(3, 1000))
	if got := connections(t, s.agent, web, 1)[0]; !got.Fallback || got.Multipath || got.Subflows != 1 {
		t.Errorf("agent: %+v", got)
	}
}

func TestCongestionControlOfEverySubflow(t *testing.T) {
	for _, name := range []string{"cubic", "reno"} {
		t.Run(name, func(t *testing.T) {
			needLab(t)
			startProxy(t, values{"congestion_control": name})
			startAgent(t, values{"congestion_control": name})
			serveOrigin(t, web, echo)
			conn := dialPhone(t, web)
			if _, err := conn.Write([]byte("hello")); err != nil {
				t.Fatal(err)
			}
			for _, node := range []string{"phone", "proxy"} {
				var lines []string
				eventually(t, "two subflows", func() bool {
					lines = nil
					out := output(t, node, "ss", "-Htino", "state", "established", "( sport = :7002 or dport = :7002 )")
					for line := range strings.Lines(out) {
						if strings.Contains(line, "cwnd:") {
							lines = append(lines, line)
						}
					}
					return len(lines) == 2
				})
				for _, line := range lines {
					if !slices.Contains(strings.Fields(line), name) {
						t.Errorf("%s: a subflow without %s: %s", node, name, line)
					}
				}
			}
		})
	}
}

func TestResetReachesTheApplication(t *testing.T) {
	cases := []struct {
		name, address string
		agent, proxy  connlog.Status
		sayHello      bool
	}{
		{"outside the allow list", "10.65.0.2:22", connlog.Refused, connlog.Refused, true},
		{"another network", "192.0.2.1:80", connlog.Refused, connlog.Refused, true},
		{"nobody listens", "10.65.0.3:443", connlog.Refused, connlog.Refused, false},
		{"the origin resets", "10.65.0.4:80", connlog.Reset, connlog.Reset, true},
	}
	for _, transport := range []string{"tcp", "mptcp"} {
		proxy := map[string]string{"tcp": "10.64.3.2:7001", "mptcp": "10.64.3.2:7002"}[transport]
		t.Run(transport, func(t *testing.T) {
			s := start(t, values{"transport": transport, "proxy": proxy})
			serveOrigin(t, "10.65.0.4:80", func(conn *net.TCPConn) {
				_, _ = conn.Read(make([]byte, 1))
				_ = conn.SetLinger(0)
				_ = conn.Close()
			})
			for _, c := range cases {
				t.Run(c.name, func(t *testing.T) {
					if err := exchangeOnce(t, c.address, c.sayHello); !errors.Is(err, syscall.ECONNRESET) {
						t.Errorf("the application saw %v, not a reset", err)
					}
					if got := connections(t, s.agent, c.address, 1)[0]; got.Status != c.agent || got.Error == "" {
						t.Errorf("agent: %+v", got)
					}
					if got := connections(t, s.proxy, c.address, 1)[0]; got.Status != c.proxy || got.Error == "" {
						t.Errorf("proxy: %+v", got)
					}
				})
			}
		})
	}
}

func TestApplicationResetReachesTheOrigin(t *testing.T) {
	for transport, proxy := range map[string]string{"tcp": "10.64.3.2:7001", "mptcp": "10.64.3.2:7002"} {
		t.Run(transport, func(t *testing.T) {
			start(t, values{"transport": transport, "proxy": proxy})
			seen := make(chan error, 1)
			serveOrigin(t, web, func(conn *net.TCPConn) {
				defer conn.Close()
				_, err := io.Copy(conn, conn)
				seen <- err
			})
			conn := dialPhone(t, web)
			_, _ = conn.Write([]byte("x"))
			if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			_ = conn.SetLinger(0)
			_ = conn.Close()
			if err := <-seen; !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the origin saw %v, not a reset", err)
			}
		})
	}
}

func TestHalfClose(t *testing.T) {
	s := start(t, nil)
	answer := payload(4, 300_000)
	serveOrigin(t, web, func(conn *net.TCPConn) { // answers only after the end of the request
		defer conn.Close()
		if request, err := io.ReadAll(conn); err == nil && string(request) == "request" {
			_, _ = conn.Write(answer)
		}
	})
	conn := dialPhone(t, web)
	_, _ = conn.Write([]byte("request"))
	_ = conn.CloseWrite()
	if got, err := io.ReadAll(conn); err != nil || !bytes.Equal(got, answer) {
		t.Errorf("%d of %d bytes, %v", len(got), len(answer), err)
	}
	if got := connections(t, s.agent, web, 1)[0]; got.Status != connlog.Closed {
		t.Errorf("agent: %+v", got)
	}
}

func TestWrongSecret(t *testing.T) {
	needLab(t)
	proxy := startProxy(t, nil)
	agent := startAgent(t, values{"secret_file": secretFile(t, "some other secret of size")})
	if err := exchangeOnce(t, web, true); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the application saw %v, not a reset", err)
	}
	if got := connections(t, agent, web, 1)[0]; got.Status != connlog.Refused {
		t.Errorf("agent: %+v", got)
	}
	refusals := records[connlog.Refusal](t, proxy.log, "refused")
	if len(refusals) != 1 || !strings.Contains(refusals[0].Reason, "the secrets differ") {
		t.Errorf("proxy: %+v", refusals)
	}
}

func TestManyConnections(t *testing.T) {
	s := start(t, nil)
	serveOrigin(t, web, echo)
	descriptors := func() int { return strings.Count(output(t, "phone", "ls", "-1", "/proc/"+pid(s.agent)+"/fd"), "\n") }
	roundTrip(t, dialPhone(t, web), payload(5, 10))
	connections(t, s.agent, web, 1)
	before := descriptors()

	const count = 200
	var wait sync.WaitGroup
	for i := range count {
		conn := dialPhone(t, web)
		wait.Go(func() { roundTrip(t, conn, payload(uint64(100+i), 50_000+i)) })
	}
	wait.Wait()
	for _, got := range connections(t, s.agent, web, 1+count) {
		if got.Status != connlog.Closed || got.BytesUp != got.BytesDown || got.Fallback {
			t.Errorf("agent: %+v", got)
		}
	}
	connections(t, s.proxy, web, 1+count)
	// The pipes of splice(2) are kept for reuse and freed by the collector.
	eventually(t, "descriptors given back", func() bool { return descriptors() <= before+4*count })
}

func TestSIGTERMUnderLoad(t *testing.T) {
	s := start(t, nil)
	serveOrigin(t, web, echo)
	const count = 20
	var conns []*net.TCPConn
	for range count {
		conn := dialPhone(t, web)
		conns = append(conns, conn)
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	var wait sync.WaitGroup
	for _, conn := range conns {
		wait.Go(func() {
			go func() { _, _ = io.Copy(conn, neverEnding{}) }()
			_, _ = io.Copy(io.Discard, conn)
		})
	}
	s.agent.stop(t)
	wait.Wait()
	for _, got := range connections(t, s.agent, web, count) {
		if got.Status != connlog.Shutdown || got.BytesUp == 0 {
			t.Errorf("agent: %+v", got)
		}
	}
	for _, got := range connections(t, s.proxy, web, count) {
		if got.Status != connlog.Reset {
			t.Errorf("proxy: %+v", got)
		}
	}
}

// neverEnding is a reader without an end.
type neverEnding struct{}

func (neverEnding) Read(b []byte) (int, error) { return len(b), nil }

func pid(p *program) string {
	data, _ := json.Marshal(p.cmd.Process.Pid)
	return string(data)
}
