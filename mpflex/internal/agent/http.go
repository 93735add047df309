package agent

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"

	"mplab/internal/netx"
	"mplab/mpflex/internal/forward/httpproxy"
	"mplab/mpflex/internal/forward/socks"
	"mplab/mpflex/internal/transport/session"
)

// openHTTP opens the listener for clients of an HTTP proxy.
func (a *Agent) openHTTP() error {
	listener, err := netx.Options{Mark: a.config.Mark}.Listen(a.config.Listen.HTTP.AddrPort)
	if err != nil {
		return err
	}
	a.http = listener
	a.httpServer = &httpproxy.Server{
		Connect: a.connectHTTP, Connections: a.config.MaxConnections, Failed: a.listenerFails, Refused: a.refuseClient,
	}
	return nil
}

// ListeningHTTP returns the address of the listener for clients of an HTTP proxy, or
// the zero AddrPort.
func (a *Agent) ListeningHTTP() netip.AddrPort {
	if a.http == nil {
		return netip.AddrPort{}
	}
	return netx.AddrPort(a.http.Addr())
}

// connectHTTP carries the connection of an HTTP proxy's client, from its request to its
// log record.
func (a *Agent) connectHTTP(ctx context.Context, request httpproxy.Request, app *net.TCPConn, reply func(int) error) {
	f := &flow{app: app, first: request.First, reply: func(err error) error { return reply(replyStatus(err)) }}
	a.connectClient(ctx, f, request.Source, request.Destination)
}

// replyStatus returns the HTTP status for the result of opening a connection.
func replyStatus(err error) int {
	if errors.Is(err, session.ErrStreams) {
		return http.StatusServiceUnavailable
	}
	switch replyCode(err) {
	case socks.Succeeded:
		return http.StatusOK
	case socks.NotAllowed:
		return http.StatusForbidden
	}
	return http.StatusBadGateway
}
