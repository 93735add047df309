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
	headTimeout = 10 * time.Second // for the head to arrive
	maxHead     = 64 << 10         // bytes of the head
)

// ErrLimit reports that the maximum number of connections is open.
var ErrLimit = errors.New("the limit of the HTTP proxy is reached")

// Request is a client's request.
type Request struct {
	Source      netip.AddrPort // the client's address
	Destination socks.Address
	// First is the rewritten head, to be sent to the destination before the client's
	// bytes. nil: a tunnel.
	First []byte
}

// Server serves clients. Do not change its fields once it serves.
type Server struct {
	// Connect serves a request. It must call reply once: with http.StatusOK, at once or
	// when the destination can be reached, or with an error status, which ends the
	// connection. No byte after the head was read from conn. Connect closes or resets
	// conn. If it does not, conn is reset when Connect returns.
	Connect func(ctx context.Context, request Request, conn *net.TCPConn, reply func(status int) error)
	// Connections is the maximum number of served connections.
	Connections int
	// Refused, if set, is called for each client that was not served, with the reason.
	Refused func(source netip.AddrPort, reason error)
	// Failed, if set, returns a function that is called for each failure to accept.
	Failed func(*net.TCPListener) func(error)
}

// Serve serves the clients of a listener until ctx ends. Then it closes the listener
// and waits for all handlers.
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
	defer netx.Abort(conn) // no effect if it is closed
	request := Request{Source: netx.AddrPort(conn.RemoteAddr())}
	head, err := readHead(ctx, conn)
	if err == nil {
		request.Destination, request.First, err = parseHead(head)
	}
	if err != nil {
		switch {
		case errors.Is(err, io.EOF): // the client opened it in advance and did not need it
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
			case request.First == nil: // otherwise the server's response is the answer
				_, err = io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
			}
		})
		return err
	}
	s.Connect(ctx, request, conn, reply)
	_ = reply(http.StatusBadGateway) // no effect if the handler has replied
}

// readHead reads the head of a request and no further byte. The error is io.EOF if the
// client sent nothing.
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

// statusOf returns the status that reports an error in a request; 0: no answer.
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

// answer returns a response without content.
func answer(status int) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status, http.StatusText(status))
}
