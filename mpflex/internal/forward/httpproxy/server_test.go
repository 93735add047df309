package httpproxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mplab/internal/netx"
	"mplab/internal/testkit"
	"mplab/mpflex/internal/forward/relay"
)

// originName is the only domain that the servers of the tests know.
const originName = "origin.test"

// direct is a handler that connects to the destination itself.
func direct(ctx context.Context, request Request, conn *net.TCPConn, reply func(int) error) {
	destination := request.Destination.AddrPort()
	if request.Destination.Domain == originName {
		destination = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), request.Destination.Port)
	}
	if !destination.IsValid() {
		return
	}
	onward, err := netx.Options{}.Dial(ctx, destination)
	if err != nil {
		if errors.Is(err, syscall.ECONNREFUSED) {
			_ = reply(http.StatusForbidden)
		}
		return
	}
	_ = reply(http.StatusOK)
	_, _ = onward.Write(request.First)
	session := &relay.Session{A: conn, B: onward}
	stop := context.AfterFunc(ctx, func() { session.Abort(relay.ErrShutdown) })
	defer stop()
	_ = session.Run()
}

// serve runs a server on the loopback interface until the end of the test. It then
// checks for leaked goroutines.
func serve(t *testing.T, server *Server) string {
	t.Helper()
	goroutines := runtime.NumGoroutine()
	listener, err := netx.Options{}.Listen(netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	if server.Connect == nil {
		server.Connect = direct
	}
	server.Connections = max(server.Connections, 2)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { server.Serve(ctx, listener) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		testkit.Eventually(t, "all goroutines ended", func() bool { return runtime.NumGoroutine() <= goroutines })
	})
	return listener.Addr().String()
}

func dial(t *testing.T, address, sent string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(testkit.Patience))
	if _, err := io.WriteString(conn, sent); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// TestClient uses Go's own client, by http and by https: many requests, with bodies in
// both directions.
func TestClient(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.IsAbs() || r.Header.Get("Proxy-Connection") != "" {
			t.Errorf("the server was sent %s with %v", r.URL, r.Header)
		}
		content, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, string(content)+r.Host+r.URL.Path)
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	proxy := &url.URL{Scheme: "http", Host: serve(t, &Server{Connections: 20})}
	for _, origin := range []*httptest.Server{plain, secure} {
		client := origin.Client()
		transport := client.Transport.(*http.Transport)
		transport.Proxy = http.ProxyURL(proxy)
		t.Cleanup(transport.CloseIdleConnections)
		for range 3 {
			const size = 200_000
			answer, err := client.Post(origin.URL+"/a/b", "text/plain", strings.NewReader(strings.Repeat("x", size)))
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if want := strings.Repeat("x", size) + strings.SplitN(origin.URL, "//", 2)[1] + "/a/b"; err != nil || string(body) != want {
				t.Errorf("%s: %d bytes, %v", origin.URL, len(body), err)
			}
		}
	}
}

// TestBytesBehindTheHead checks that no byte after the head is read from the
// connection, in whatever pieces the head arrives.
func TestBytesBehindTheHead(t *testing.T) {
	got := make(chan string, 1)
	proxy := serve(t, &Server{Connect: func(_ context.Context, request Request, conn *net.TCPConn, reply func(int) error) {
		_ = reply(http.StatusOK)
		rest, _ := io.ReadAll(conn)
		got <- string(request.First) + "|" + string(rest)
		_ = conn.Close()
	}})
	conn := dial(t, proxy, "CONNECT origin.test:1 HTTP/1.1\r\nX: "+strings.Repeat("long", 3000))
	time.Sleep(10 * time.Millisecond)
	_, _ = io.WriteString(conn, "\r\n\r\nfirst, ")
	_, _ = io.WriteString(conn, "and last")
	_ = conn.CloseWrite()
	if answer, _ := bufio.NewReader(conn).ReadString('\n'); answer != "HTTP/1.1 200 Connection established\r\n" {
		t.Errorf("%q", answer)
	}
	if found := <-got; found != "|first, and last" {
		t.Errorf("%q", found)
	}
}

func TestRefused(t *testing.T) {
	var mu sync.Mutex
	var refused []string
	proxy := serve(t, &Server{Connections: 20, Refused: func(_ netip.AddrPort, reason error) {
		mu.Lock()
		defer mu.Unlock()
		refused = append(refused, reason.Error())
	}})
	cases := []struct{ sent, answer, reason string }{
		{"GET / HTTP/1.1\r\n\r\n", "400 Bad Request", `not a request to a proxy: "GET / HTTP/1.1"`},
		{"GET https://a/ HTTP/1.1\r\n\r\n", "501 Not Implemented", `the target is not http: "https://a/"`},
		{"\x05\x01\x00 hello\n\n", "400 Bad Request", `malformed request: a control character in "\x05\x01\x00 hello"`},
		{"GET http://a/ HTTP/1.1\r\nX: " + strings.Repeat("x", maxHead) + "\r\n\r\n", "431 Request Header Fields Too Large",
			"the head of the request is too long: more than 65536 bytes"},
		{"CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n", "403 Forbidden", ""}, // no listener
		{"CONNECT unknown.test:1 HTTP/1.1\r\n\r\n", "502 Bad Gateway", ""},
	}
	for _, c := range cases {
		conn := dial(t, proxy, c.sent)
		answer, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 "+c.answer+"\r\nContent-Length: 0\r\n") {
			t.Errorf("%.40q: %q, %v", c.sent, answer, err)
		}
		_ = conn.Close()
		mu.Lock()
		if c.reason != "" && (len(refused) == 0 || refused[len(refused)-1] != c.reason) {
			t.Errorf("%.40q: %q", c.sent, refused)
		}
		mu.Unlock()
	}
	// A connection that was opened in advance and not needed gets no answer.
	conn := dial(t, proxy, "")
	_ = conn.CloseWrite()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if mu.Lock(); len(refused) != 4 {
		t.Errorf("%q", refused)
	}
	mu.Unlock()
}

// TestEndsWithSilentClients checks that silent clients do not delay the end of a
// server.
func TestEndsWithSilentClients(t *testing.T) {
	proxy := serve(t, &Server{Connections: 3})
	for _, said := range []string{"", "GET http://a/ HTTP/1.1\r\n", "CONNECT"} {
		dial(t, proxy, said)
	}
	time.Sleep(20 * time.Millisecond)
}

func TestLimit(t *testing.T) {
	told := make(chan error, 1)
	proxy := serve(t, &Server{Connections: 2, Refused: func(_ netip.AddrPort, reason error) { told <- reason }})
	for range 2 {
		dial(t, proxy, "")
	}
	if conn, err := net.Dial("tcp", proxy); err == nil { // otherwise it was reset at once
		defer conn.Close()
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("it was served")
		}
	}
	if err := <-told; !errors.Is(err, ErrLimit) {
		t.Error(err)
	}
}
