// Package agent is the part on the phone: it takes the applications'
// connections and lookups and carries them to the proxy.
package agent

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"mplab/mpflex/accept"
	"mplab/mpflex/carrier"
	"mplab/mpflex/config"
	"mplab/mpflex/connlog"
	"mplab/mpflex/dnsforward"
	"mplab/mpflex/identity"
	"mplab/mpflex/netx"
	"mplab/mpflex/owner"
	"mplab/mpflex/relay"
	"mplab/mpflex/status"
	"mplab/mpflex/uplink"
	"mplab/mpflex/wire"
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
	log      *connlog.Log
	redirect *net.TCPListener
	dns      *dnsforward.Forwarder // nil when the configuration has none
	owners   *owner.Finder
	open     status.Open
	group    *accept.Group
	lastID   atomic.Uint64
}

// NewDialer returns the dialer that an agent with this configuration uses.
func NewDialer(c config.Agent) *carrier.Dialer {
	return &carrier.Dialer{
		Proxy:  c.Proxy.AddrPort,
		Secret: c.Secret,
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
	return uplink.New(o)
}

// New opens the agent's listeners and proves, on a socket, that connections can
// be opened as configured.
func New(ctx context.Context, c config.Agent, log *connlog.Log) (*Agent, error) {
	a := &Agent{
		Destination: netx.OriginalDestination,
		config:      c,
		dialer:      NewDialer(c),
		log:         log,
		group:       accept.NewGroup(c.MaxConnections),
	}
	if err := a.dialer.Options.Probe(); err != nil {
		return nil, err
	}
	if c.Transport == config.MPFlex {
		up, err := NewUplink(c, func(e uplink.Event) { log.Write(connlog.NewPathEvent(e.Event, e.Session.String())) })
		if err != nil {
			return nil, err
		}
		a.uplink, a.dialer.Streams = up, up
		a.logStatus()
	}
	// Applications speak plain TCP to the agent, whatever carries them on.
	local := netx.Options{Mark: c.Mark}
	var err error
	if a.redirect, err = local.Listen(c.Listen.Redirect.AddrPort); err != nil {
		return nil, err
	}
	if c.Listen.DNS.IsValid() {
		socket, err := local.ListenUDP(ctx, c.Listen.DNS.AddrPort)
		if err != nil {
			_ = a.redirect.Close()
			return nil, err
		}
		a.dns = dnsforward.New(socket, a.dialer, c.DNSServer.AddrPort, log, a.record)
	}
	a.owners = owner.NewFinder()
	return a, nil
}

// Listening returns the addresses of the listeners; dns is the zero AddrPort
// when there is none.
func (a *Agent) Listening() (redirect, dns netip.AddrPort) {
	if a.dns != nil {
		dns = a.dns.Addr()
	}
	return netx.AddrPort(a.redirect.Addr()), dns
}

// Run serves until ctx ends, resets and logs what is open then, and returns.
func (a *Agent) Run(ctx context.Context) {
	defer a.owners.Close()
	if a.uplink != nil {
		a.group.Go(func() { a.uplink.Run(ctx) })
	}
	if a.dns != nil {
		a.group.Go(func() { a.dns.Run(ctx) })
	}
	a.group.Serve(ctx, a.redirect, func(conn *net.TCPConn) { a.serve(ctx, conn) }, a.refuse)
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
		return a.carry(ctx, app, &record)
	}()
	if err != nil {
		netx.Abort(app) // does nothing when the relay did it
	}
	a.finish(&record, search, err)
}

// carry opens the carrying connection and relays until the end.
func (a *Agent) carry(ctx context.Context, app *net.TCPConn, record *connlog.Connection) error {
	conn, err := a.dialer.Open(ctx, carrier.Request{
		Command:     wire.Connect,
		Source:      record.Src.AddrPort,
		Destination: record.Dst.AddrPort,
		Early:       app,
	})
	if err != nil {
		return err
	}
	session := &relay.Session{
		A: app, B: conn.Stream,
		Idle:   a.config.IdleTimeout(),
		Open:   conn.Answer,
		Sample: conn.Sample,
	}
	session.Up.Add(int64(conn.Early))
	defer a.open.Add(record, session)()
	stop := context.AfterFunc(ctx, func() { session.Abort(relay.ErrShutdown) })
	defer stop()
	err = session.Run()
	conn.Describe(record)
	record.BytesUp, record.BytesDown = session.Up.Load(), session.Down.Load()
	return err
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
		Event: "connection", ID: a.lastID.Add(1), Opened: connlog.Unix(time.Now()),
		Src: connlog.Endpoint{AddrPort: src}, Transport: a.config.Transport, Device: a.config.Device,
		UID: owner.Unknown.UID, PID: owner.Unknown.PID, CongestionControl: a.config.CongestionControl,
	}
}

// finish completes a record and writes it.
func (a *Agent) finish(record *connlog.Connection, search *owner.Search, err error) {
	record.DurationS = connlog.Since(record.Opened)
	found := search.Wait(ownerWait)
	record.UID, record.PID, record.Process = found.UID, found.PID, found.Process
	record.Status, record.Error = carrier.Outcome(err)
	a.log.Write(*record)
}
