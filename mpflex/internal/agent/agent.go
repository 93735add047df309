package agent

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"mplab/internal/jsonlog"
	"mplab/internal/netx"
	"mplab/mpflex/config"
	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/forward/accept"
	"mplab/mpflex/internal/forward/carrier"
	"mplab/mpflex/internal/forward/dnsforward"
	"mplab/mpflex/internal/forward/httpproxy"
	"mplab/mpflex/internal/forward/owner"
	"mplab/mpflex/internal/forward/relay"
	"mplab/mpflex/internal/forward/socks"
	"mplab/mpflex/internal/transport/identity"
	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/internal/transport/uplink"
	"mplab/mpflex/status"
)

const (
	// shutdownWait bounds how long Run waits for open connections at the end.
	shutdownWait = 800 * time.Millisecond
	// ownerWait bounds how long a record waits for its connection's owner.
	ownerWait = 200 * time.Millisecond
)

// errLimit: as many connections are open as the configuration allows.
var errLimit = errors.New("the agent's connection limit is reached")

// Agent carries the connections of one phone.
type Agent struct {
	// Destination tells where an accepted connection was bound for; it is
	// netx.OriginalDestination unless a test sets another.
	Destination func(*net.TCPConn) (netip.AddrPort, error)

	config   config.Agent
	dialer   *carrier.Dialer
	uplink   *uplink.Uplink // nil: each connection is carried by one of its own
	rules    *rules         // nil: all is carried by the default scheme
	networks networks       // watched when connections are plain TCP of their own
	log      *jsonlog.Log
	redirect *net.TCPListener      // nil when the configuration has none, as with the next two
	dns      *dnsforward.Forwarder // without a socket when only names are to be resolved
	socks    *net.TCPListener
	http     *net.TCPListener
	owners   *owner.Finder
	open     status.Open
	group    *accept.Group
	lastID   atomic.Uint64

	socksServer  *socks.Server // of the listener
	httpServer   *httpproxy.Server
	associations associations // of its clients
	past         past         // for what rules let past the proxy
}

// NewDialer returns the dialer that an agent with this configuration uses.
func NewDialer(c config.Agent) *carrier.Dialer {
	return &carrier.Dialer{
		Proxy:   c.Proxy.AddrPort,
		Secret:  c.Secret,
		Devices: c.Devices,
		Options: netx.Options{
			Multipath:  c.Transport == config.MPTCP,
			Mark:       c.Mark,
			Device:     c.Device,
			Congestion: c.CongestionControl,
		},
	}
}

// NewUplink returns the sessions of an agent with this configuration; log is
// told what happens to their paths.
func NewUplink(c config.Agent, log func(uplink.Event)) (*uplink.Uplink, error) {
	return newUplink(c, log, nil)
}

func newUplink(c config.Agent, log func(uplink.Event), more func(*uplink.Options)) (*uplink.Uplink, error) {
	o := uplink.Options{
		Proxy: c.Proxy.AddrPort, Secret: c.Secret, Socket: netx.Options{Mark: c.Mark, Congestion: c.CongestionControl},
		Session: c.Session.Config(),
		Log:     log,
	}
	for _, p := range c.Paths {
		o.Paths = append(o.Paths, uplink.Path{Device: p.Device, Backup: p.Backup})
	}
	if !c.Plain {
		private, err := identity.NewAgent(c.Secret, identity.Options{})
		if err != nil {
			return nil, err
		}
		o.Private = private
	}
	if more != nil {
		more(&o)
	}
	return uplink.New(o)
}

// New opens the agent's listeners and proves, on a socket, that connections can
// be opened as configured.
func New(ctx context.Context, c config.Agent, log *jsonlog.Log) (*Agent, error) {
	a := &Agent{
		Destination: netx.OriginalDestination,
		config:      c,
		dialer:      NewDialer(c),
		log:         log,
		group:       accept.NewGroup(c.MaxConnections),
	}
	a.group.Failed = a.listenerFails
	if err := a.dialer.Options.Probe(); err != nil {
		return nil, err
	}
	if c.PolicyFile != "" {
		var err error
		if a.rules, err = newRules(c, log, a.sessionStatus); err != nil {
			return nil, err
		}
	}
	if c.Transport == config.MPFlex {
		up, err := newUplink(c, a.tell, func(o *uplink.Options) {
			o.Datagram = a.associations.deliver
			o.Session.Budget = session.NewBudget(c.Session.Budget(config.DefaultAgentBudget), func(s session.Shortage) { log.Write(connlog.NewMemory(s)) })
			if a.rules != nil {
				o.Schemes = a.rules.encoded
			}
		})
		if err != nil {
			return nil, err
		}
		a.uplink, a.dialer.Streams = up, up
		a.past = newPast(c, &a.associations)
		a.logStatus()
	}
	if err := a.listen(ctx); err != nil {
		a.close()
		return nil, err
	}
	a.owners = owner.NewFinder()
	return a, nil
}

// tell logs what happens to the sessions.
func (a *Agent) tell(e uplink.Event) {
	if e.What == uplink.Unwatched {
		a.log.Write(connlog.NewNotice(e.Time, e.Err.Error()))
		return
	}
	a.log.Write(connlog.OfSession(e.Event, e.Session.String(), ""))
}

// listen opens the listeners.
func (a *Agent) listen(ctx context.Context) (err error) {
	// Applications speak plain TCP to the agent, whatever carries them on.
	local, c := netx.Options{Mark: a.config.Mark}, a.config
	if c.Listen.Redirect.IsValid() {
		if a.redirect, err = local.Listen(c.Listen.Redirect.AddrPort); err != nil {
			return err
		}
	}
	if c.Listen.Socks.IsValid() {
		if err := a.openSocks(); err != nil {
			return err
		}
	}
	if c.Listen.HTTP.IsValid() {
		if err := a.openHTTP(); err != nil {
			return err
		}
	}
	var socket *net.UDPConn
	if c.Listen.DNS.IsValid() {
		if socket, err = local.ListenUDP(ctx, c.Listen.DNS.AddrPort); err != nil {
			return err
		}
	}
	if c.DNSServer.IsValid() {
		lookups := a.dialer
		if len(c.Devices) > 0 {
			lookups = NewDialer(c) // with turns of its own: a lookup takes none of the applications' turns
		}
		a.dns = dnsforward.New(socket, lookups, c.DNSServer.AddrPort, a.log, a.record)
		if a.rules != nil {
			a.dns.Decide = a.lookupWay
			a.dns.Learn = func(message []byte) { a.rules.names.Learn(message, time.Now()) }
		}
	}
	return nil
}

// close closes the listeners that are open.
func (a *Agent) close() {
	for _, l := range []*net.TCPListener{a.redirect, a.socks, a.http} {
		if l != nil {
			_ = l.Close()
		}
	}
}

// Listening returns the addresses of the listeners for what is redirected; the
// zero AddrPort when there is none.
func (a *Agent) Listening() (redirect, dns netip.AddrPort) {
	if a.dns != nil {
		dns = a.dns.Addr()
	}
	if a.redirect != nil {
		redirect = netx.AddrPort(a.redirect.Addr())
	}
	return redirect, dns
}

// Run serves until ctx ends, resets and logs what is open then, and returns.
func (a *Agent) Run(ctx context.Context) {
	defer a.owners.Close()
	if a.uplink != nil {
		defer a.past.relay.Close()
		a.group.Go(func() { a.uplink.Run(ctx) })
	}
	if a.config.Transport == config.TCP {
		a.group.Go(func() {
			a.networks.watch(ctx, func(err error) { a.log.Write(connlog.NewNotice(time.Now(), err.Error())) })
		})
	}
	if a.rules != nil {
		a.group.Go(func() { a.keepRules(ctx) })
	}
	if a.dns != nil {
		a.group.Go(func() { a.dns.Run(ctx) })
	}
	if a.socks != nil {
		a.group.Go(func() { a.socksServer.Serve(ctx, a.socks) })
	}
	if a.http != nil {
		a.group.Go(func() { a.httpServer.Serve(ctx, a.http) })
	}
	if a.redirect != nil {
		a.group.Serve(ctx, a.redirect, func(conn *net.TCPConn) { a.serve(ctx, conn) }, a.refuse)
	}
	<-ctx.Done()
	a.group.Wait(shutdownWait)
}

// serve carries one application connection from its accept to its record.
func (a *Agent) serve(ctx context.Context, app *net.TCPConn) {
	record := a.record(netx.AddrPort(app.RemoteAddr()))
	var search *owner.Search
	err := func() error {
		destination, err := a.Destination(app)
		if err != nil {
			return err
		}
		record.Dst.AddrPort = destination
		search = a.owners.Find(record.Src.AddrPort, destination)
		return a.handle(ctx, &flow{app: app, record: &record, search: search})
	}()
	if err != nil {
		netx.Abort(app) // does nothing when the relay did it
	}
	a.finish(&record, search, err)
}

// carry opens the carrying connection and relays until the end. When the
// application is to be answered, that is done before a byte is relayed.
func (a *Agent) carry(ctx context.Context, f *flow, request carrier.Request) error {
	use := a.networks.use(ctx)
	defer use.end()
	conn, err := a.dialer.Open(use, request)
	if err != nil {
		_ = f.answer(err)
		return err
	}
	if conn.TCP != nil {
		use.bound(netx.AddrPort(conn.LocalAddr()).Addr())
	}
	defer conn.Describe(f.record)
	s := &relay.Session{A: f.app, B: conn.Stream}
	if a.config.Transport == config.MPTCP {
		s.Sample = conn.Sample
	}
	if f.reply == nil {
		s.Open = conn.Answer
	} else if err := a.answered(use, conn, f); err != nil {
		netx.Abort(conn)
		return err
	}
	s.Up.Add(int64(conn.Early))
	return a.relay(use, s, f.record)
}

// relay relays until the end.
func (a *Agent) relay(ctx context.Context, s *relay.Session, record *connlog.Connection) error {
	s.Idle = a.config.IdleTimeout()
	defer a.open.Add(record, s)()
	stop := context.AfterFunc(ctx, func() { s.Abort(ending(ctx)) })
	defer stop()
	err := s.Run()
	record.BytesUp, record.BytesDown = s.Up.Load(), s.Down.Load()
	return err
}

// answered waits for the proxy's answer and tells the application.
func (a *Agent) answered(ctx context.Context, conn *carrier.Conn, f *flow) error {
	stop := context.AfterFunc(ctx, func() { netx.Abort(conn) })
	defer stop()
	err := conn.Answer()
	if ctx.Err() != nil {
		err = ending(ctx)
	}
	if failed := f.answer(err); err == nil {
		err = failed
	}
	return err
}

// listenerFails returns what logs that a listener cannot accept.
func (a *Agent) listenerFails(l *net.TCPListener) func(error) {
	return connlog.Listening(a.log, connlog.Endpoint{AddrPort: netx.AddrPort(l.Addr())})
}

// refuse logs a connection over the limit.
func (a *Agent) refuse(app *net.TCPConn) {
	record := a.record(netx.AddrPort(app.RemoteAddr()))
	record.Dst.AddrPort, _ = a.Destination(app)
	record.Status, record.Error = connlog.Refused, errLimit.Error()
	a.log.Write(record)
}

// record begins the record of a connection of src.
func (a *Agent) record(src netip.AddrPort) connlog.Connection {
	return connlog.Connection{
		Event: "connection", ID: a.lastID.Add(1), Opened: connlog.Now(),
		Src: connlog.Endpoint{AddrPort: src}, Transport: a.config.Transport, Device: a.config.Device,
		UID: owner.Unknown.UID, PID: owner.Unknown.PID, CongestionControl: a.config.CongestionControl,
	}
}

// finish completes a record and writes it.
func (a *Agent) finish(record *connlog.Connection, search *owner.Search, err error) {
	record.DurationS = record.Opened.Since()
	found := search.Wait(ownerWait)
	record.UID, record.PID, record.Process = found.UID, found.PID, found.Process
	record.Status, record.Error = carrier.Outcome(err)
	if errors.Is(err, errBlocked) {
		record.Status = connlog.Blocked
	}
	a.log.Write(*record)
}
