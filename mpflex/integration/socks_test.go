package integration

import (
	"io"
	"maps"
	"net"
	"os"
	"testing"
	"time"

	"mplab/mpflex/connlog"
)

const socksServer = "127.0.0.1:1080"

// withSocks are the settings of an agent that serves SOCKS alone.
func withSocks(v values) values {
	all := values{"listen": values{"socks": socksServer}}
	maps.Copy(all, v)
	return all
}

// connectSocks asks the agent for a connection by SOCKS, and returns it with the
// code of the reply (RFC 1928 §6). What is said goes with the request.
func connectSocks(t testing.TB, destination []byte, say string) (*net.TCPConn, byte) {
	t.Helper()
	conn := dialPhone(t, socksServer)
	request := append([]byte{5, 1, 0, 5, 1, 0}, destination...)
	if _, err := conn.Write(append(request, say...)); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	answer := make([]byte, 2+10)
	if _, err := io.ReadFull(conn, answer); err != nil {
		t.Fatalf("no reply: %v", err)
	}
	_ = conn.SetReadDeadline(time.Time{})
	return conn, answer[2+1]
}

// byAddress is a destination of IPv4, byName one with a name.
func byAddress(last, port byte) []byte { return []byte{1, 10, 65, 0, last, 0, port} }

func byName(name string, port byte) []byte {
	return append(append([]byte{3, byte(len(name))}, name...), 0, port)
}

func transports() map[string]values {
	return map[string]values{
		"tcp":    {"transport": "tcp", "proxy": "10.64.3.2:7001"},
		"mptcp":  {"transport": "mptcp", "proxy": "10.64.3.2:7002"},
		"mpflex": flex(false),
	}
}

func TestSocksConnect(t *testing.T) {
	for name, settings := range transports() {
		t.Run(name, func(t *testing.T) {
			s := start(t, withSocks(settings))
			serveOrigin(t, web, echo)
			nameServer(t, -1)
			for i, destination := range [][]byte{byAddress(2, 80), byName("dl.lab", 80)} {
				conn, code := connectSocks(t, destination, "")
				if code != 0 {
					t.Fatalf("%v: the reply is %d", destination, code)
				}
				const size = 300_000
				roundTrip(t, conn, payload(uint64(i), size))
				conn.Close()
				got := connections(t, s.agent, web, i+1)[i]
				if got.Status != connlog.Closed || got.BytesUp != size || got.BytesDown != size || got.Transport != name {
					t.Errorf("%+v", got)
				}
				if got.Src.String() != conn.LocalAddr().String() || got.PID != os.Getpid() {
					t.Errorf("the application is %+v", got)
				}
			}
		})
	}
}

// What the application says with its request arrives, first and whole.
func TestSocksFirstBytes(t *testing.T) {
	for name, settings := range transports() {
		t.Run(name, func(t *testing.T) {
			start(t, withSocks(settings))
			serveOrigin(t, web, echo)
			conn, code := connectSocks(t, byAddress(2, 80), "before the reply,")
			if _, err := conn.Write([]byte(" and after")); code != 0 || err != nil {
				t.Fatal(code, err)
			}
			_ = conn.CloseWrite()
			if all, err := io.ReadAll(conn); err != nil || string(all) != "before the reply, and after" {
				t.Errorf("%q, %v", all, err)
			}
		})
	}
}

func TestSocksRefused(t *testing.T) {
	cases := []struct {
		name        string
		destination []byte
		code        byte // with a session: 0, and a reset, when the name is known
		unresolved  bool
	}{
		{"nobody listens", byAddress(3, 80), 5, false},
		{"outside the allow list", byAddress(2, 22), 2, false},
		{"no such name", byName("other.lab", 80), 4, true},
	}
	for name, settings := range transports() {
		t.Run(name, func(t *testing.T) {
			s := start(t, withSocks(settings))
			nameServer(t, -1)
			for _, c := range cases {
				conn, code := connectSocks(t, c.destination, "hello")
				want := c.code
				if name == "mpflex" && !c.unresolved {
					want = 0
					if _, err := conn.Read(make([]byte, 1)); err == nil {
						t.Errorf("%s: it was reached", c.name)
					}
				}
				if code != want {
					t.Errorf("%s: the reply is %d, not %d", c.name, code, want)
				}
				conn.Close()
			}
			eventually(t, "records of all", func() bool {
				bad := 0
				for _, r := range records[connlog.Connection](t, s.agent.log, "connection") {
					if r.Status != connlog.Closed && r.Error != "" {
						bad++
					}
				}
				return bad == len(cases)
			})
		})
	}
}
