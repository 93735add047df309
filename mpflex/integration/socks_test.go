package integration

import (
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mplab/mpflex/connlog"
)

const socksServer = "127.0.0.1:1080"

// withSocks returns the settings of an agent that serves only SOCKS.
func withSocks(v values) values {
	all := values{"listen": values{"socks": socksServer}}
	maps.Copy(all, v)
	return all
}

// connectSocks requests a connection by SOCKS and returns it with the code of the reply
// (RFC 1928 §6). say is sent with the request.
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

// byAddress returns an IPv4 destination, byName one with a host name.
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

// TestSocksFirstBytes checks that the bytes that the application sends with its request
// arrive first and completely.
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
		code        byte // with a session: 0 and then a reset, if the name is known
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

// TestSocksUsers: only a client with a password of the file is served. No password is
// in the log. A name is resolved once.
func TestSocksUsers(t *testing.T) {
	users := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(users, []byte("me:correct horse\nyou:battery staple\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := withSocks(flex(false))
	settings["socks_users_file"], settings["dns_server"] = users, dnsServer
	s := start(t, settings)
	serveOrigin(t, web, echo)
	nameServer(t, -1)
	// say sends the methods, then the rest, and reads `answers` bytes.
	say := func(methods, rest string, answers int) (*net.TCPConn, []byte) {
		conn := dialPhone(t, socksServer)
		_ = conn.SetDeadline(time.Now().Add(patience))
		if _, err := io.WriteString(conn, "\x05"+string(rune(len(methods)))+methods+rest); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, answers)
		n, _ := io.ReadFull(conn, answer)
		return conn, answer[:n]
	}
	credentials := func(user, password string) string {
		return "\x01" + string(rune(len(user))) + user + string(rune(len(password))) + password
	}
	request := "\x05\x01\x00" + string(byName("dl.lab", 80))
	for range 3 {
		conn, answer := say("\x00\x02", credentials("you", "battery staple")+request, 2+2+10)
		if len(answer) != 14 || string(answer[:4]) != "\x05\x02\x01\x00" || answer[5] != 0 {
			t.Fatalf("%x", answer)
		}
		roundTrip(t, conn, payload(1, 1000))
		conn.Close()
	}
	if _, answer := say("\x00", request, 14); string(answer) != "\x05\xff" {
		t.Errorf("without a password: %x", answer)
	}
	if _, answer := say("\x02", credentials("me", "battery staple")+request, 14); string(answer) != "\x05\x02\x01\x01" {
		t.Errorf("with another user's password: %x", answer)
	}
	connections(t, s.agent, web, 3)
	s.agent.stop(t)
	if got := records[connlog.Refusal](t, s.agent.log, "refused"); len(got) != 2 {
		t.Errorf("%+v", got)
	}
	if got := records[connlog.Lookup](t, s.agent.log, "dns"); len(got) != 2 || got[0].Type != "A" || got[1].Type != "AAAA" {
		t.Errorf("lookups: %+v", got)
	}
	if log, err := os.ReadFile(s.agent.log); err != nil || strings.Contains(string(log), "staple") {
		t.Errorf("a password is in the log, or there is none: %v", err)
	}
}

// TestSocksFull: if the session has its maximum of streams, the client gets an error
// code, not a connection that is reset.
func TestSocksFull(t *testing.T) {
	needLab(t)
	startProxy(t, values{"session": values{"max_streams": 1}})
	startAgent(t, withSocks(flex(false)))
	serveOrigin(t, web, echo)
	first, code := connectSocks(t, byAddress(2, 80), "")
	if code != 0 {
		t.Fatalf("the first stream: code %d", code)
	}
	say(t, first)
	if _, code := connectSocks(t, byAddress(2, 80), ""); code != 1 {
		t.Errorf("the second of one stream: code %d", code)
	}
	_ = first.Close()
	eventually(t, "room for another stream", func() bool {
		_, code := connectSocks(t, byAddress(2, 80), "")
		return code == 0
	})
}
