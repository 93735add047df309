// Package proxy is the part on the server: it takes carrying connections from
// agents that know the secret and connects them to the destinations asked for.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"mplab/mpflex/accept"
	"mplab/mpflex/carrier"
	"mplab/mpflex/config"
	"mplab/mpflex/connlog"
	"mplab/mpflex/downlink"
	"mplab/mpflex/netx"
	"mplab/mpflex/owner"
	"mplab/mpflex/relay"
	"mplab/mpflex/status"
	"mplab/mpflex/wire"
)

const (
	// helloTimeout bounds the wait for the hello.
	helloTimeout = 5 * time.Second
	// dialTimeout bounds the way to the destination.
	dialTimeout = 10 * time.Second
	// shutdownWait bounds how long Run waits for open connections at the end.
	shutdownWait = 800 * time.Millisecond
	// drainTimeout bounds how long a connection that was answered with a
	// refusal is kept, so that a reset does not overtake the answer.
	drainTimeout = time.Second
	// maxEcho bounds what the echo service returns on one connection, bytes.
	maxEcho = 1 << 20
)

// Proxy serves the agents that know its secret.
type Proxy struct {
	config    config.Proxy
	log       *connlog.Log
	onward    netx.Options // of the sockets towards destinations
	listeners []listener
	replay    *wire.Replay
	group     *accept.Group
	open      status.Open
	sessions  *downlink.Server // nil: there is no listener for paths
	clients   *clients         // of the sessions
	lastID    atomic.Uint64
}

type listener struct {
	*net.TCPListener
	transport string
}

// New opens the proxy's listeners.
func New(c config.Proxy, log *connlog.Log) (*Proxy, error) {
	p := &Proxy{
		config: c,
		log:    log,
		onward: netx.Options{Congestion: c.CongestionControl},
		replay: wire.NewReplay(wire.DefaultReplayEntries),
		group:  accept.NewGroup(c.MaxConnections),
	}
	if err := p.onward.Probe(); err != nil {
		return nil, err
	}
	if c.Listen.MPFlex.IsValid() || c.Listen.MPFlexPlain.IsValid() {
		if err := p.newSessions(); err != nil {
			return nil, err
		}
	}
	for transport, address := range c.Listen.All() {
		if !address.IsValid() {
			continue
		}
		options := netx.Options{Multipath: transport == config.MPTCP, Congestion: c.CongestionControl}
		socket, err := options.Listen(address.AddrPort)
		if err != nil {
			p.close()
			return nil, err
		}
		p.listeners = append(p.listeners, listener{socket, transport})
	}
	return p, nil
}

func (p *Proxy) close() {
	for _, l := range p.listeners {
		_ = l.Close()
	}
}

// Listening returns the address of the listener of a transport, the zero
// AddrPort when there is none.
func (p *Proxy) Listening(transport string) netip.AddrPort {
	for _, l := range p.listeners {
		if l.transport == transport {
			return netx.AddrPort(l.Addr())
		}
	}
	return netip.AddrPort{}
}

// Run serves until ctx ends, resets and logs what is open then, and returns.
func (p *Proxy) Run(ctx context.Context) {
	for _, l := range p.listeners {
		p.group.Go(func() {
			p.group.Serve(ctx, l.TCPListener, func(conn *net.TCPConn) { p.serve(ctx, conn, l.transport) }, p.overLimit)
		})
	}
	<-ctx.Done()
	if p.sessions != nil {
		p.group.Go(p.sessions.Close)
	}
	p.group.Wait(shutdownWait)
	if p.clients != nil {
		p.clients.relay.Close()
	}
}

// serve carries one connection from its accept to its record.
func (p *Proxy) serve(ctx context.Context, conn *net.TCPConn, transport string) {
	if transport == config.MPFlex || transport == config.MPFlexPlain {
		p.takePath(ctx, conn, transport)
		return
	}
	record := connlog.Connection{
		Event: "connection", Opened: connlog.Unix(time.Now()), Transport: transport,
		Local:  connlog.Endpoint{AddrPort: netx.AddrPort(conn.LocalAddr())},
		Remote: connlog.Endpoint{AddrPort: netx.AddrPort(conn.RemoteAddr())},
		UID:    owner.Unknown.UID, PID: owner.Unknown.PID, CongestionControl: p.config.CongestionControl,
	}
	watch := netx.NewWatch(conn, transport == config.MPTCP)
	hello, err := p.admit(ctx, conn)
	if err != nil {
		p.refused(record.Remote.AddrPort, err)
		_ = conn.Close()
		return
	}
	record.ID = p.lastID.Add(1)
	record.Src.AddrPort, record.Dst.AddrPort = hello.Source, hello.Destination
	err = p.fulfil(ctx, conn, hello, watch, &record)
	record.Multipath, record.Fallback, record.Subflows = watch.State()
	record.DurationS = connlog.Since(record.Opened)
	record.Status, record.Error = carrier.Outcome(err)
	p.log.Write(record)
}

// admit reads the hello of an agent that knows the secret. Anybody else gets
// an error and, from the caller, not a byte.
func (p *Proxy) admit(ctx context.Context, conn *net.TCPConn) (wire.Hello, error) {
	if err := p.prepare(conn); err != nil {
		return wire.Hello{}, err
	}
	if err := conn.SetReadDeadline(time.Now().Add(helloTimeout)); err != nil {
		return wire.Hello{}, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	hello, err := wire.ReadHello(conn, p.config.Secret)
	if err != nil && !errors.Is(err, wire.ErrCommand) {
		return wire.Hello{}, err
	}
	if err := p.replay.Accept(hello, time.Now()); err != nil {
		return wire.Hello{}, err
	}
	return hello, conn.SetReadDeadline(time.Time{})
}

// prepare sets what is configured for accepted connections.
func (p *Proxy) prepare(conn *net.TCPConn) error {
	if p.config.CongestionControl == "" {
		return nil
	}
	return netx.SetCongestion(conn, p.config.CongestionControl)
}

// fulfil does what an authentic hello asks for.
func (p *Proxy) fulfil(ctx context.Context, conn *net.TCPConn, hello wire.Hello, watch *netx.Watch, record *connlog.Connection) error {
	switch hello.Command {
	case wire.Echo:
		return p.echo(ctx, conn, hello, watch, record)
	case wire.Connect:
		return p.connect(ctx, conn, hello, watch, record)
	}
	return p.decline(conn, hello, wire.Bad, fmt.Errorf("%w: %d", wire.ErrCommand, hello.Command))
}

// connect connects to the destination and relays until the end.
func (p *Proxy) connect(ctx context.Context, conn *net.TCPConn, hello wire.Hello, watch *netx.Watch, record *connlog.Connection) error {
	if !p.config.Allowed.Permits(hello.Destination) {
		err := fmt.Errorf("destination %s is not in the allow list", hello.Destination)
		p.refused(record.Remote.AddrPort, err)
		return p.decline(conn, hello, wire.Denied, err)
	}
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	destination, err := p.onward.Dial(dialing, hello.Destination)
	if errors.Is(err, context.Canceled) {
		netx.Abort(conn)
		return relay.ErrShutdown
	}
	if err != nil {
		return p.decline(conn, hello, dialStatus(err), err)
	}
	if _, err := conn.Write(wire.OK.Append(nil, p.config.Secret, hello.Nonce)); err != nil {
		netx.Abort(conn)
		netx.Abort(destination)
		return err
	}
	session := &relay.Session{A: conn, B: destination, Idle: p.config.IdleTimeout(), Sample: watch.Sample}
	defer p.open.Add(record, session)()
	stop := context.AfterFunc(ctx, func() { session.Abort(relay.ErrShutdown) })
	defer stop()
	err = session.Run()
	record.BytesUp, record.BytesDown = session.Up.Load(), session.Down.Load()
	return err
}

// echo returns what it is sent, up to maxEcho.
func (p *Proxy) echo(ctx context.Context, conn *net.TCPConn, hello wire.Hello, watch *netx.Watch, record *connlog.Connection) error {
	stop := context.AfterFunc(ctx, func() { netx.Abort(conn) })
	defer stop()
	defer conn.Close() //nolint:errcheck // nothing is left to lose
	if _, err := conn.Write(wire.OK.Append(nil, p.config.Secret, hello.Nonce)); err != nil {
		return err
	}
	if err := conn.SetDeadline(time.Now().Add(p.config.IdleTimeout())); err != nil {
		return err
	}
	n, err := io.Copy(conn, io.LimitReader(conn, maxEcho))
	watch.Sample()
	record.BytesUp, record.BytesDown = n, n
	if ctx.Err() != nil {
		return relay.ErrShutdown
	}
	return err
}

// decline answers with a status other than OK and sees the connection off. It
// returns the error for the record.
func (p *Proxy) decline(conn *net.TCPConn, hello wire.Hello, status wire.Status, reason error) error {
	_ = conn.SetDeadline(time.Now().Add(drainTimeout))
	if _, err := conn.Write(status.Append(nil, p.config.Secret, hello.Nonce)); err == nil {
		// Closing with bytes unread would reset the connection.
		_ = conn.CloseWrite()
		_, _ = io.Copy(io.Discard, conn)
	}
	netx.Abort(conn)
	return declined{&carrier.StatusError{Status: status}, reason}
}

// declined is a refusal with the reason that is logged but not sent.
type declined struct {
	status *carrier.StatusError
	reason error
}

func (d declined) Error() string { return d.reason.Error() }
func (d declined) Unwrap() error { return d.status }

func dialStatus(err error) wire.Status {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return wire.Refused
	case errors.Is(err, syscall.ETIMEDOUT), errors.As(err, &timeout) && timeout.Timeout():
		return wire.Timeout
	}
	return wire.Unreachable
}

func (p *Proxy) overLimit(conn *net.TCPConn) {
	p.refused(netx.AddrPort(conn.RemoteAddr()), fmt.Errorf("the connection limit of %d is reached", p.config.MaxConnections))
}

func (p *Proxy) refused(remote netip.AddrPort, reason error) {
	p.log.Write(connlog.Refusal{
		Event: "refused", T: connlog.Unix(time.Now()), Remote: connlog.Endpoint{AddrPort: remote}, Reason: reason.Error(),
	})
}
