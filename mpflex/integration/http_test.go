package integration

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"mplab/mpflex/connlog"
)

const httpServer = "127.0.0.1:8118"

// withHTTP returns the settings of an agent that serves only an HTTP proxy.
func withHTTP(v values) values {
	all := values{"listen": values{"http": httpServer}, "dns_server": dnsServer}
	for key, value := range v {
		all[key] = value
	}
	return all
}

// askHTTP sends a request to the agent's HTTP proxy. It returns the status of the
// answer and a reader after its head.
func askHTTP(t testing.TB, head string) (*net.TCPConn, int, *bufio.Reader) {
	t.Helper()
	conn := dialPhone(t, httpServer)
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, head+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	method, _, _ := strings.Cut(head, " ")
	answer, err := http.ReadResponse(reader, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%q: %v", head, err)
	}
	return conn, answer.StatusCode, reader
}

func TestHTTPTunnel(t *testing.T) {
	for name, settings := range transports() {
		t.Run(name, func(t *testing.T) {
			s := start(t, withHTTP(settings))
			serveOrigin(t, web, echo)
			nameServer(t, -1)
			for i, destination := range []string{"10.65.0.2:80", "dl.lab:80"} {
				conn, status, reader := askHTTP(t, "CONNECT "+destination+" HTTP/1.1")
				if status != http.StatusOK || reader.Buffered() > 0 {
					t.Fatalf("%s: %d, and %d bytes", destination, status, reader.Buffered())
				}
				const size = 300_000
				roundTrip(t, conn, payload(uint64(i), size))
				conn.Close()
				got := connections(t, s.agent, web, i+1)[i]
				if got.Status != connlog.Closed || got.BytesUp != size || got.BytesDown != size || got.Transport != name || got.PID != os.Getpid() {
					t.Errorf("%+v", got)
				}
				if named := got.Domain == "dl.lab"; named != (i == 1) {
					t.Errorf("the domain is %q", got.Domain)
				}
			}
		})
	}
}

// TestHTTPRequest checks that the server gets the client's request, and the client gets
// its answer.
func TestHTTPRequest(t *testing.T) {
	for name, settings := range transports() {
		t.Run(name, func(t *testing.T) {
			s := start(t, withHTTP(settings))
			serveOrigin(t, web, func(conn *net.TCPConn) {
				defer conn.Close()
				request, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					t.Error(err)
					return
				}
				body, err := io.ReadAll(request.Body)
				if err != nil || request.RequestURI != "/a?b" || request.Host != "dl.lab" || !request.Close || string(body) != "content" {
					t.Errorf("%+v, %q, %v", request, body, err)
				}
				_, _ = io.WriteString(conn, "HTTP/1.1 201 Created\r\nConnection: close\r\n\r\nthe answer")
			})
			nameServer(t, -1)
			conn, status, reader := askHTTP(t, "POST http://dl.lab/a?b HTTP/1.1\r\nHost: dl.lab\r\nContent-Length: 7\r\n\r\ncontent\r\n")
			if rest, err := io.ReadAll(reader); status != http.StatusCreated || err != nil || string(rest) != "the answer" {
				t.Errorf("%d, %q, %v", status, rest, err)
			}
			conn.Close()
			got := connections(t, s.agent, web, 1)[0]
			if sent := "POST /a?b HTTP/1.1\r\nHost: dl.lab\r\nContent-Length: 7\r\nConnection: close\r\n\r\ncontent"; got.BytesUp < int64(len(sent)) {
				t.Errorf("%d bytes are counted of %d: %+v", got.BytesUp, len(sent), got)
			}
		})
	}
}

func TestHTTPRefused(t *testing.T) {
	for name, settings := range transports() {
		t.Run(name, func(t *testing.T) {
			s := start(t, withHTTP(settings))
			nameServer(t, -1)
			for _, c := range []struct {
				head   string
				status int
			}{
				{"CONNECT 10.65.0.3:80 HTTP/1.1", http.StatusBadGateway}, // no listener
				{"CONNECT 10.65.0.2:22 HTTP/1.1", http.StatusForbidden},  // outside the allow list
				{"GET http://other.lab/ HTTP/1.1", http.StatusBadGateway},
				{"GET / HTTP/1.1", http.StatusBadRequest},
			} {
				if strings.Contains(c.head, "10.65") && name == "mpflex" {
					continue // with a session, the reply is "connected" at once, then a reset
				}
				if _, status, _ := askHTTP(t, c.head); status != c.status {
					t.Errorf("%s: %d", c.head, status)
				}
			}
			eventually(t, "a record with the name that has no address", func() bool {
				return slices.ContainsFunc(records[connlog.Connection](t, s.agent.log, "connection"), func(r connlog.Connection) bool {
					return r.Domain == "other.lab" && r.Status != connlog.Closed
				})
			})
		})
	}
}
