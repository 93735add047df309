package socks

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/proxy"

	"mplab/internal/testkit"
)

func TestCurl(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("curl is not installed")
	}
	page := strings.Repeat("all of the page\n", 10_000)
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, page) }))
	defer origin.Close()
	byName := strings.Replace(origin.URL, "127.0.0.1", originName, 1)
	refused := "http://" + closedPort(t).String() + "/"

	open := serve(t, &Server{Handler: Handler{Connect: direct(false)}}).String()
	early := serve(t, &Server{Handler: Handler{Connect: direct(true)}}).String()
	closed := serve(t, &Server{Handler: Handler{Connect: direct(false)}, Users: map[string]string{"me": "secret"}}).String()
	cases := []struct {
		name   string
		args   []string
		answer string // a part of curl's error message; "": success
	}{
		{"by address", []string{"--socks5", open, origin.URL}, ""},
		{"by name", []string{"--socks5-hostname", open, byName}, ""},
		{"answered at once", []string{"--socks5", early, origin.URL}, ""},
		{"answered at once, by name", []string{"--socks5-hostname", early, byName}, ""},
		{"with a password", []string{"--socks5", closed, "--proxy-user", "me:secret", origin.URL}, ""},
		{"with a wrong password", []string{"--socks5", closed, "--proxy-user", "me:guess", origin.URL}, "rejected"},
		{"without a password", []string{"--socks5", closed, origin.URL}, "No authentication method"},
		{"refused", []string{"--socks5", open, refused}, "(5)"},
		{"a name that nobody knows", []string{"--socks5-hostname", open, "http://nowhere.test/"}, "(4)"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command(curl, append([]string{"--silent", "--show-error", "--noproxy", "", "--max-time", "20"}, c.args...)...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			switch {
			case c.answer == "" && (err != nil || stdout.String() != page):
				t.Errorf("%d bytes, %v: %s", stdout.Len(), err, stderr.String())
			case c.answer != "" && (err == nil || !strings.Contains(stderr.String(), c.answer)):
				t.Errorf("%v: %s", err, stderr.String())
			}
		})
	}
}

func TestGoClient(t *testing.T) {
	echo := testkit.Echo(t)
	server := serve(t, &Server{Handler: Handler{Connect: direct(false)}, Users: map[string]string{"me": "secret"}})
	dialer, err := proxy.SOCKS5("tcp", server.String(), &proxy.Auth{User: "me", Password: "secret"}, proxy.Direct)
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for i := range 20 {
		wait.Go(func() {
			conn, err := dialer.Dial("tcp", echo.String())
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			sent := bytes.Repeat([]byte{byte(i)}, 200_000+i)
			go func() { _, _ = conn.Write(sent) }()
			got := make([]byte, len(sent))
			if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, sent) {
				t.Errorf("connection %d: %v", i, err)
			}
		})
	}
	wait.Wait()
	if _, err := dialer.Dial("tcp", closedPort(t).String()); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a destination that refuses: %v", err)
	}
}

// TestFirstDataComesWithTheRequest checks that bytes that a client sends before the
// reply are available to the handler, complete and without a byte of the request.
func TestFirstDataComesWithTheRequest(t *testing.T) {
	first := make(chan string, 1)
	server := serve(t, &Server{Handler: Handler{Connect: func(_ context.Context, _ Request, conn *net.TCPConn, reply func(Code) error) {
		data := make([]byte, 5)
		_, err := io.ReadFull(conn, data)
		first <- string(data)
		if err := errors.Join(err, reply(Succeeded)); err != nil {
			t.Error(err)
		}
		if err := reply(ConnectionRefused); err == nil {
			t.Error("two replies")
		}
		_, _ = io.WriteString(conn, "answer")
		_ = conn.Close()
	}}})
	conn := dial(t, server, greeting+request(commandConnect, netip.MustParseAddrPort("10.65.0.2:80"))+"early")
	got, err := io.ReadAll(conn)
	if want := "\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00answer"; err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
	if data := <-first; data != "early" {
		t.Errorf("the handler read %q", data)
	}
}

// TestRefusals has refused requests, with the answer to the client. The connection then
// ends in order, even if the client sent more bytes.
func TestRefusals(t *testing.T) {
	somewhere := netip.MustParseAddrPort("10.65.0.2:80")
	const failure = "\x00\x01\x00\x00\x00\x00\x00\x00"
	cases := []struct {
		name, sent, want string
		users            map[string]string
		err              error
	}{
		{"SOCKS 4", "\x04\x01\x00\x50\x0a\x41\x00\x02\x00", "", nil, ErrVersion},
		{"HTTP", "GET / HTTP/1.1\r\n\r\n", "", nil, ErrVersion},
		{"no method", "\x05\x01\x01" + "more", "\x05\xff", nil, ErrMethod},
		{"no password offered", greeting, "\x05\xff", map[string]string{}, ErrMethod},
		{"nobody has a password", "\x05\x02\x00\x02" + "\x01\x02me\x00", "\x05\x02\x01\x01", map[string]string{}, ErrUser},
		{"bind", greeting + request(2, somewhere) + "more", "\x05\x00\x05\x07" + failure, nil, ErrCommand},
		{"associate without a handler", greeting + request(commandAssociate, somewhere), "\x05\x00\x05\x07" + failure, nil, ErrCommand},
		{"no such command", greeting + request(9, somewhere), "\x05\x00\x05\x07" + failure, nil, ErrCommand},
		{"no such type of address", greeting + "\x05\x01\x00\x02\x00\x00\x00", "\x05\x00\x05\x08" + failure, nil, ErrAddressType},
		{"request of another version", greeting + "\x04\x01\x00\x01\x00\x00\x00\x00\x00\x00", "\x05\x00\x05\x01" + failure, nil, ErrVersion},
		{"a bad domain", greeting + "\x05\x01\x00\x03\x01\x00\x00\x50", "\x05\x00\x05\x01" + failure, nil, ErrFormat},
		{"the handler says no", greeting + request(commandConnect, somewhere) + "more", "\x05\x00\x05\x02" + failure, nil, nil},
		{"the handler says nothing", greeting + request(commandConnect, netip.MustParseAddrPort("10.0.0.1:1")), "\x05\x00\x05\x01" + failure, nil, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			refused := make(chan error, 1)
			s := &Server{
				Handler: Handler{Connect: func(_ context.Context, request Request, _ *net.TCPConn, reply func(Code) error) {
					if request.Destination.AddrPort() == somewhere {
						_ = reply(NotAllowed)
					}
				}},
				Users:   c.users,
				Refused: func(_ netip.AddrPort, reason error) { refused <- reason },
			}
			conn := dial(t, serve(t, s), c.sent)
			got := make([]byte, len(c.want))
			if _, err := io.ReadFull(conn, got); err != nil || string(got) != c.want {
				t.Errorf("got  %q, %v\nwant %q", got, err, c.want)
			}
			rest, err := io.ReadAll(conn)
			if len(rest) != 0 || c.want != "" && err != nil {
				t.Errorf("then %q, %v", rest, err)
			}
			if c.err == nil {
				return
			}
			if err := <-refused; !errors.Is(err, c.err) {
				t.Errorf("%v, want %v", err, c.err)
			}
			if got := s.Counters.Failed.Load(); got != 1 {
				t.Errorf("%d counted", got)
			}
		})
	}
}

func TestHandshakeTimeout(t *testing.T) {
	refused := make(chan error, 2)
	server := serve(t, &Server{
		Limits:  Limits{Handshake: 20 * time.Millisecond},
		Refused: func(_ netip.AddrPort, reason error) { refused <- reason },
	})
	for _, sent := range []string{"", greeting + "\x05\x01\x00"} {
		conn := dial(t, server, sent)
		_, _ = io.ReadAll(conn) // until the server closes it
		if err := <-refused; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q: %v", sent, err)
		}
	}
}

func TestConnectionLimit(t *testing.T) {
	echo := testkit.Echo(t)
	refused := make(chan error, 1)
	s := &Server{
		Handler: Handler{Connect: direct(false)}, Limits: Limits{Connections: 1},
		Refused: func(_ netip.AddrPort, reason error) { refused <- reason },
	}
	server := serve(t, s)
	first := dial(t, server, greeting)
	if _, err := io.ReadFull(first, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	second, err := net.Dial("tcp", server.String())
	if err == nil {
		defer second.Close()
		if n, err := second.Read(make([]byte, 1)); err == nil {
			t.Errorf("the second client was sent %d bytes", n)
		}
	}
	if err := <-refused; !errors.Is(err, ErrLimit) || s.Counters.OverLimit.Load() != 1 {
		t.Errorf("%v, %d counted", err, s.Counters.OverLimit.Load())
	}
	_, _ = io.WriteString(first, request(commandConnect, echo)+"still served")
	if _, err := io.ReadFull(first, make([]byte, 10+len("still served"))); err != nil {
		t.Error(err)
	}
}

// TestShutdown checks that the end of the server ends clients at every stage. serve
// checks for leaks.
func TestShutdown(t *testing.T) {
	echo := testkit.Echo(t)
	server := serve(t, &Server{Handler: Handler{Connect: direct(true), Associate: answerUpperCase(t)}})
	dial(t, server, "")
	dial(t, server, greeting)
	connected := dial(t, server, greeting+request(commandConnect, echo)+"x")
	if _, err := io.ReadFull(connected, make([]byte, 13)); err != nil {
		t.Fatal(err)
	}
	associated := dial(t, server, greeting+request(commandAssociate, netip.MustParseAddrPort("0.0.0.0:0")))
	if _, err := io.ReadFull(associated, make([]byte, 12)); err != nil {
		t.Fatal(err)
	}
}
