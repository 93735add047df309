package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"mplab/internal/jsonlog"
	"mplab/internal/netx"
	"mplab/mpflex/config"
	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/forward/accept"
	"mplab/mpflex/internal/forward/carrier"
	"mplab/mpflex/internal/forward/owner"
	"mplab/mpflex/internal/forward/relay"
	"mplab/mpflex/internal/transport/downlink"
	"mplab/mpflex/internal/transport/identity"
	"mplab/mpflex/status"
	"mplab/mpflex/wire"
)

const (
	// helloTimeout bounds the wait for the hello.
	helloTimeout = 5 * time.Second
	// dialTimeout bounds the time to connect to the destination.
	dialTimeout = 10 * time.Second
	// shutdownWait bounds how long Run waits at the end for open connections.
	shutdownWait = 800 * time.Millisecond
	// drainTimeout bounds how long a connection is read after a refusal, so that a
	// reset does not overtake the answer.
	drainTimeout = time.Second
	// maxEcho bounds the bytes that the echo service returns on one connection.
	maxEcho = 1 << 20
)

// Proxy serves agents that have the secret of a client.
type Proxy struct {
	config    config.Proxy
	log       *jsonlog.Log
	onward    netx.Options // options of the sockets to destinations
	reach     *reach       // permitted destinations
	listeners []listener
	known     *identity.Proxy // permitted clients
	group     *accept.Group
	open      status.Open
	sessions  *downlink.Server // nil: no listener for paths
	clients   *clients         // open sessions
	lastID    atomic.Uint64

	connections identity.Quota // counts per client
	carriers    carriers
	refusals    jsonlog.Throttle
	reload      sync.Mutex // held while the clients are replaced
}

type listener struct {
	*net.TCPListener
	transport string
}

// New opens the proxy's listeners.
func New(c config.Proxy, log *jsonlog.Log) (*Proxy, error) {
	p := &Proxy{
		config: c,
		log:    log,
		onward: netx.Options{Congestion: c.CongestionControl},
		group:  accept.NewGroup(c.MaxConnections),
	}
	p.connections.Most = c.PerClient.Connections
	var err error
	p.known, err = identity.NewProxy(c.Clients, identity.Options{
		// Half of all connections are reserved for identified clients.
		MaxStrangers: max(1, c.MaxConnections/2), Hellos: !c.Listen.MPFlex.IsValid(),
	})
	if err != nil {
		return nil, err
	}
	if err := p.onward.Probe(); err != nil {
		return nil, err
	}
	if p.reach, err = newReach(c.Allowed); err != nil {
		return nil, err
	}
	if c.Listen.MPFlex.IsValid() || c.Listen.MPFlexPlain.IsValid() {
		p.newSessions()
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
		p.reach.listeners = append(p.reach.listeners, netx.AddrPort(socket.Addr()))
	}
	return p, nil
}

func (p *Proxy) close() {
	for _, l := range p.listeners {
		_ = l.Close()
	}
}

// Listening returns the address of a transport's listener, or the zero AddrPort.
func (p *Proxy) Listening(transport string) netip.AddrPort {
	for _, l := range p.listeners {
		if l.transport == transport {
			return netx.AddrPort(l.Addr())
		}
	}
	return netip.AddrPort{}
}

// Run serves until ctx ends. Then it resets and logs the open connections.
func (p *Proxy) Run(ctx context.Context) {
	p.group.Failed = func(l *net.TCPListener) func(error) {
		return connlog.Listening(p.log, connlog.Endpoint{AddrPort: netx.AddrPort(l.Addr())})
	}
	p.group.Go(p.keepClients(ctx))
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

// serve serves one connection, from its accept to its log record.
func (p *Proxy) serve(ctx context.Context, conn *net.TCPConn, transport string) {
	if transport == config.MPFlex || transport == config.MPFlexPlain {
		p.takePath(ctx, conn, transport)
		return
	}
	record := connlog.Connection{
		Event: "connection", Opened: connlog.Now(), Transport: transport,
		Local:  connlog.Endpoint{AddrPort: netx.AddrPort(conn.LocalAddr())},
		Remote: connlog.Endpoint{AddrPort: netx.AddrPort(conn.RemoteAddr())},
		UID:    owner.Unknown.UID, PID: owner.Unknown.PID, CongestionControl: p.config.CongestionControl,
	}
	watch := netx.NewWatch(conn, transport == config.MPTCP)
	v, err := p.admit(ctx, conn)
	if err != nil {
		p.refused(v.client.Name, record.Remote.AddrPort, err)
		_ = conn.Close()
		return
	}
	defer v.leave()
	record.ID, record.Client = p.lastID.Add(1), v.client.Name
	record.Src.AddrPort, record.Dst.AddrPort = v.hello.Source, v.hello.Destination
	err = p.fulfil(v, watch, &record)
	record.Multipath, record.Fallback, record.Subflows = watch.State()
	record.DurationS = record.Opened.Since()
	record.Status, record.Error = carrier.Outcome(err)
	p.log.Write(record)
}

// admit reads a hello. It fails without a known secret, and for a client with too many
// connections; the caller must then send no byte. After a success, the caller must call
// leave.
func (p *Proxy) admit(ctx context.Context, conn *net.TCPConn) (visit, error) {
	defer p.known.Stranger(conn)()
	v := visit{conn: conn}
	if err := p.prepare(conn); err != nil {
		return v, err
	}
	if err := conn.SetReadDeadline(time.Now().Add(helloTimeout)); err != nil {
		return v, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var err error
	if v.hello, v.client, err = p.known.ReadHello(conn); err != nil {
		if errors.Is(err, wire.ErrSkew) { // the message is authentic, so its sender may get the time
			v.seeOff(wire.AppendSkewed(nil, v.client.Secret, v.hello.Nonce, v.client.Now()))
		}
		return v, err
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return v, err
	}
	return v, p.enter(ctx, &v)
}

// prepare sets the configured congestion control of an accepted connection.
func (p *Proxy) prepare(conn *net.TCPConn) error {
	if p.config.CongestionControl == "" {
		return nil
	}
	return netx.SetCongestion(conn, p.config.CongestionControl)
}

// fulfil executes the command of an authentic hello.
func (p *Proxy) fulfil(v visit, watch *netx.Watch, record *connlog.Connection) error {
	switch v.hello.Command {
	case wire.Echo:
		return p.echo(v, watch, record)
	case wire.Connect:
		return p.connect(v, watch, record)
	}
	return v.decline(wire.Bad, fmt.Errorf("%w: %d", wire.ErrCommand, v.hello.Command))
}

// connect connects to the destination and relays until the end.
func (p *Proxy) connect(v visit, watch *netx.Watch, record *connlog.Connection) error {
	if !p.reach.permits(v.hello.Destination) {
		err := p.reach.denied(v.hello.Destination)
		p.refused(v.client.Name, record.Remote.AddrPort, err)
		return v.decline(wire.Denied, err)
	}
	dialing, cancel := context.WithTimeout(v.ctx, dialTimeout)
	defer cancel()
	destination, err := p.onward.Dial(dialing, v.hello.Destination)
	if errors.Is(err, context.Canceled) {
		netx.Abort(v.conn)
		return v.ended()
	}
	if err != nil {
		return v.decline(dialStatus(err), err)
	}
	if err := v.answer(wire.OK); err != nil {
		netx.Abort(v.conn)
		netx.Abort(destination)
		return err
	}
	session := &relay.Session{A: v.conn, B: destination, Idle: p.config.IdleTimeout()}
	if record.Transport == config.MPTCP {
		session.Sample = watch.Sample
	}
	defer p.open.Add(record, session)()
	stop := context.AfterFunc(v.ctx, func() { session.Abort(v.ended()) })
	defer stop()
	err = session.Run()
	record.BytesUp, record.BytesDown = session.Up.Load(), session.Down.Load()
	return err
}

// echo returns the bytes it receives, up to maxEcho.
func (p *Proxy) echo(v visit, watch *netx.Watch, record *connlog.Connection) error {
	conn := v.conn
	stop := context.AfterFunc(v.ctx, func() { netx.Abort(conn) })
	defer stop()
	defer conn.Close() //nolint:errcheck // nothing is left to lose
	if err := v.answer(wire.OK); err != nil {
		return err
	}
	if err := conn.SetDeadline(time.Now().Add(p.config.IdleTimeout())); err != nil {
		return err
	}
	n, err := io.Copy(conn, io.LimitReader(conn, maxEcho))
	watch.Sample()
	record.BytesUp, record.BytesDown = n, n
	if v.ctx.Err() != nil {
		return v.ended()
	}
	return err
}

// decline answers a status other than OK and ends the connection. It returns the error
// for the record.
func (v visit) decline(status wire.Status, reason error) error {
	v.seeOff(status.Append(nil, v.client.Secret, v.hello.Nonce))
	return declined{&carrier.StatusError{Status: status}, reason}
}

// seeOff sends the last message of a connection and ends it.
func (v visit) seeOff(message []byte) {
	_ = v.conn.SetDeadline(time.Now().Add(drainTimeout))
	if _, err := v.conn.Write(message); err == nil {
		// Closing with unread bytes would reset the connection.
		_ = v.conn.CloseWrite()
		_, _ = io.Copy(io.Discard, v.conn)
	}
	netx.Abort(v.conn)
}

// declined is a refusal. Its reason is logged but not sent.
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
	p.refused("", netx.AddrPort(conn.RemoteAddr()), fmt.Errorf("the connection limit of %d is reached", p.config.MaxConnections))
}

// refused logs a refusal, unless there were too many recently. client is "" if unknown.
func (p *Proxy) refused(client string, remote netip.AddrPort, reason error) {
	now := time.Now()
	suppressed, ok := p.refusals.Take(now)
	if !ok {
		return
	}
	p.log.Write(connlog.Refusal{
		Event: "refused", T: jsonlog.Unix(now), Client: client, Remote: connlog.Endpoint{AddrPort: remote}, Reason: reason.Error(),
		Suppressed: suppressed,
	})
}
