package httpproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"mplab/internal/netx"
	"mplab/mpflex/internal/forward/accept"
	"mplab/mpflex/internal/forward/socks"
)

// Bounds of a request.
const (
	headTimeout = 10 * time.Second // until its head is there
	maxHead     = 64 << 10         // bytes of its head
)

// ErrLimit: as many connections are open as the limit allows.
var ErrLimit = errors.New("the limit of the HTTP proxy is reached")

// Request is what a client asks for.
type Request struct {
	Source      netip.AddrPort // the client's end of the connection
	Destination socks.Address
	// First is what the destination is sent before the client's bytes: the
	// request's head, made ready for it. Nil: a tunnel.
	First []byte
}

// Server serves clients. Its fields are not changed once it serves.
type Server struct {
	// Connect serves a request. It calls reply once: with http.StatusOK, at
	// once or when it knows that the destination can be reached, or with what
	// the client is told instead, which ends the connection. Connect closes or
	// resets conn itself, of which not a byte behind the request's head was
	// read; one that it leaves open is reset when it returns.
	Connect func(ctx context.Context, request Request, conn *net.TCPConn, reply func(status int) error)
	// Connections is how many are served at one time.
	Connections int
	// Refused, when set, is told of each client that was not served, and why.
	Refused func(source netip.AddrPort, reason error)
	// Failed, when set, returns what is told of each failure to accept.
	Failed func(*net.TCPListener) func(error)
}

// Serve serves the clients of a listener until ctx ends, then closes it and
// returns when all handlers have returned.
func (s *Server) Serve(ctx context.Context, listener *net.TCPListener) {
	group := accept.NewGroup(s.Connections)
	group.Failed = s.Failed
	group.Serve(ctx, listener, func(conn *net.TCPConn) { s.serve(ctx, conn) }, func(conn *net.TCPConn) {
		s.refuse(conn, fmt.Errorf("%w: %d connections", ErrLimit, s.Connections))
	})
	group.Wait(math.MaxInt64)
}

func (s *Server) refuse(conn *net.TCPConn, reason error) {
	if s.Refused != nil {
		s.Refused(netx.AddrPort(conn.RemoteAddr()), reason)
	}
}

// serve serves one connection to its end.
func (s *Server) serve(ctx context.Context, conn *net.TCPConn) {
	defer netx.Abort(conn) // does nothing to one that is closed
	request := Request{Source: netx.AddrPort(conn.RemoteAddr())}
	head, err := readHead(ctx, conn)
	if err == nil {
		request.Destination, request.First, err = parseHead(head)
	}
	if err != nil {
		switch {
		case errors.Is(err, io.EOF): // a connection that was opened in advance, and not needed
			_ = conn.Close()
			return
		case ctx.Err() != nil:
			return
		}
		s.refuse(conn, err)
		if status := statusOf(err); status != 0 {
			netx.SeeOff(ctx, conn, answer(status))
		}
		return
	}
	var once sync.Once
	reply := func(status int) error {
		err := fmt.Errorf("httpproxy: %d was not sent: the request is answered already", status)
		once.Do(func() {
			err = nil
			switch {
			case status != http.StatusOK:
				netx.SeeOff(ctx, conn, answer(status))
			case request.First == nil: // else the server answers
				_, err = io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
			}
		})
		return err
	}
	s.Connect(ctx, request, conn, reply)
	_ = reply(http.StatusBadGateway) // does nothing when the handler has replied
}

// readHead reads the head of a request, and not a byte more. The error is io.EOF
// when the client has said nothing.
func readHead(ctx context.Context, conn *net.TCPConn) ([]byte, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	deadline := time.Now().Add(headTimeout)
	buffer, n := make([]byte, 4<<10), 0
	for {
		found := netx.Peek(conn, buffer, n, deadline)
		if end := endOfHead(buffer[:found]); end > 0 {
			_, err := io.ReadFull(conn, buffer[:end])
			return buffer[:end], err
		}
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case found == len(buffer) && found >= maxHead:
			return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLong, maxHead)
		case found == len(buffer):
			buffer = make([]byte, 2*len(buffer))
		case found == 0:
			return nil, io.EOF
		case found <= n:
			return nil, fmt.Errorf("%w: it ends, or stops, after %d bytes of its head", ErrFormat, found)
		}
		n = found
	}
}

// statusOf is what a client is told of an error in its request; 0: nothing.
func statusOf(err error) int {
	switch {
	case errors.Is(err, ErrTooLong):
		return http.StatusRequestHeaderFieldsTooLarge
	case errors.Is(err, ErrScheme):
		return http.StatusNotImplemented
	case errors.Is(err, ErrFormat), errors.Is(err, ErrTarget):
		return http.StatusBadRequest
	}
	return 0
}

// answer is a whole response without content.
func answer(status int) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status, http.StatusText(status))
}
