// Package carrier opens carrying connections: what the agent sends an
// application's bytes over. Now each application connection has one of its
// own, over plain TCP or kernel MPTCP.
package carrier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"mplab/mpflex/connlog"
	"mplab/mpflex/netx"
	"mplab/mpflex/relay"
	"mplab/mpflex/wire"
)

const (
	// dialTimeout bounds the way to the proxy, and at the proxy the way to
	// the destination.
	dialTimeout = 10 * time.Second
	// statusTimeout bounds the wait for the proxy's answer: its own dial and
	// some round trips.
	statusTimeout = dialTimeout + 5*time.Second
	// maxEarly is how many of the application's first bytes may leave in one
	// write with the hello.
	maxEarly = 16 << 10
)

// Errors of opening.
var (
	// ErrProxy: the proxy cannot be reached; it wraps the reason.
	ErrProxy = errors.New("the proxy cannot be reached")
	// ErrNoAnswer: the proxy closed the connection instead of answering.
	ErrNoAnswer = errors.New("the proxy closed the connection without an answer (another secret, another clock, or its connection limit)")
)

// StatusError is an authentic answer of the proxy other than OK.
type StatusError struct{ Status wire.Status }

// Error implements error.
func (e *StatusError) Error() string { return e.Status.String() }

// Dialer opens carrying connections to one proxy. Its fields are not changed
// once it is in use.
type Dialer struct {
	Proxy   netip.AddrPort
	Options netx.Options
	Secret  []byte
}

// Request is what a carrying connection is opened for.
type Request struct {
	Command     wire.Command
	Source      netip.AddrPort // the application's address; for the proxy's log
	Destination netip.AddrPort
	Early       *net.TCPConn // when set, bytes that can be read from it at once leave with the hello
}

// Conn is an open carrying connection. Its answer must be read with Answer
// before anything else is read.
type Conn struct {
	*net.TCPConn
	*netx.Watch
	Early int       // how many bytes of the request's Early left with the hello
	Sent  time.Time // when the hello left

	dialer *Dialer
	nonce  [wire.NonceSize]byte
}

// Open connects to the proxy and sends the hello, without waiting for the
// answer: it costs no round trip beyond the connection's own.
func (d *Dialer) Open(ctx context.Context, request Request) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	tcp, err := d.Options.Dial(ctx, d.Proxy)
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return nil, relay.ErrShutdown
		}
		return nil, fmt.Errorf("%w: %w", ErrProxy, err)
	}
	hello := wire.NewHello(request.Command, request.Source, request.Destination)
	message := hello.Append(make([]byte, 0, 1<<10), d.Secret)
	conn := &Conn{TCPConn: tcp, Watch: netx.NewWatch(tcp, d.Options.Multipath), dialer: d, nonce: hello.Nonce}
	if request.Early != nil {
		early := make([]byte, maxEarly)
		conn.Early = netx.ReadNow(request.Early, early)
		message = append(message, early[:conn.Early]...)
	}
	conn.Sent = time.Now()
	if _, err := tcp.Write(message); err != nil {
		netx.Abort(tcp)
		return nil, fmt.Errorf("%w: sending the hello: %w", ErrProxy, err)
	}
	return conn, nil
}

// Answer waits for the proxy's answer. It returns nil when the destination is
// connected.
func (c *Conn) Answer() error {
	if err := c.SetReadDeadline(time.Now().Add(statusTimeout)); err != nil {
		return err
	}
	status, err := wire.ReadStatus(c.TCPConn, c.dialer.Secret, c.nonce)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return ErrNoAnswer
	case err != nil:
		return err
	case status != wire.OK:
		return &StatusError{status}
	}
	c.Sample()
	return c.SetReadDeadline(time.Time{})
}

// Describe fills in what a record says of the carrying connection.
func (c *Conn) Describe(record *connlog.Connection) {
	record.Local.AddrPort = netx.AddrPort(c.LocalAddr())
	record.Remote.AddrPort = netx.AddrPort(c.RemoteAddr())
	record.Multipath, record.Fallback, record.Subflows = c.State()
}

// Outcome is how the log calls the end of a carried connection.
func Outcome(err error) (connlog.Status, string) {
	if err == nil {
		return connlog.Closed, ""
	}
	return outcome(err), err.Error()
}

func outcome(err error) connlog.Status {
	var answer *StatusError
	switch {
	case errors.Is(err, relay.ErrShutdown):
		return connlog.Shutdown
	case errors.As(err, &answer):
		switch answer.Status {
		case wire.Unreachable:
			return connlog.Unreachable
		case wire.Timeout:
			return connlog.Timeout
		}
		return connlog.Refused
	case errors.Is(err, ErrNoAnswer), errors.Is(err, wire.ErrMAC), errors.Is(err, wire.ErrFormat), errors.Is(err, wire.ErrVersion):
		return connlog.Refused
	case errors.Is(err, relay.ErrIdle), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return connlog.Timeout
	case errors.Is(err, ErrProxy):
		return connlog.Unreachable
	}
	return connlog.Reset
}
