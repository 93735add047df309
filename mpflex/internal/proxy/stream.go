package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"mplab/internal/netx"
	"mplab/mpflex/config"
	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/forward/carrier"
	"mplab/mpflex/internal/forward/owner"
	"mplab/mpflex/internal/forward/relay"
	"mplab/mpflex/internal/transport/downlink"
	"mplab/mpflex/internal/transport/identity"
	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/wire"
)

// openTimeout bounds the wait for a stream's open message. Later bytes of the stream
// can arrive before it: a message on a stalled path is sent again.
const openTimeout = 10 * time.Second

// newSessions makes the server of the agents' sessions.
func (p *Proxy) newSessions() {
	p.clients = p.newClients()
	p.sessions = downlink.New(downlink.Options{
		Identity: p.known, Session: p.config.Session.Config(), Serve: p.serveStream, Watch: p.logStatus, Begin: p.begin,
		Most: p.config.PerClient.Sessions, Connections: &p.connections, Streams: &identity.Quota{Most: p.config.PerClient.Streams},
		Log: func(e downlink.Event) { p.log.Write(connlog.OfSession(e.Event, e.Session.String(), e.Client)) },
		Refused: func(client identity.Client, remote net.Addr, reason error) {
			p.refused(client.Name, netx.AddrPort(remote), reason)
		},
		Budget: session.NewBudget(p.config.Session.Budget(config.DefaultProxyBudget), func(s session.Shortage) { p.log.Write(connlog.NewMemory(s)) }),
	})
}

// takePath makes a connection a path and returns when the path has ended.
func (p *Proxy) takePath(ctx context.Context, conn *net.TCPConn, transport string) {
	err := p.prepare(conn)
	if err == nil {
		err = p.sessions.Take(ctx, conn, transport == config.MPFlex)
	}
	if err != nil {
		var fault *identity.FaultError
		client := ""
		if errors.As(err, &fault) {
			client = fault.Client
		}
		p.refused(client, netx.AddrPort(conn.RemoteAddr()), err)
		_ = conn.Close()
	}
}

// serveStream serves a stream, from its start to its log record.
func (p *Proxy) serveStream(ctx context.Context, client identity.Client, st *session.Stream) {
	record := connlog.Connection{
		Event: "connection", Client: client.Name, Opened: connlog.Now(), Transport: config.MPFlex,
		UID: owner.Unknown.UID, PID: owner.Unknown.PID, CongestionControl: p.config.CongestionControl,
	}
	open, err := readOpen(st)
	if open.Command != wire.Schemes {
		record.ID = p.lastID.Add(1)
	}
	one := p.clients.of(st)
	switch {
	case err == nil && one == nil:
		err = relay.ErrShutdown
	case err == nil && open.Command == wire.Schemes:
		p.takeSchemes(st, one)
		return
	case err == nil:
		err = p.fulfilStream(ctx, st, one, open, &record)
	}
	if err != nil {
		netx.Abort(st) // no effect if the relay has reset it
	}
	carrier.DescribeStream(st, &record)
	record.DurationS = record.Opened.Since()
	record.Status, record.Error = carrier.Outcome(err)
	if one != nil && record.BytesUp+record.BytesDown == 0 {
		var ok bool
		if record.Suppressed, ok = one.records.empty.Take(time.Now()); !ok {
			return
		}
	}
	p.log.Write(record)
}

// readOpen reads the open message of a stream.
func readOpen(st *session.Stream) (wire.Open, error) {
	if err := st.SetReadDeadline(time.Now().Add(openTimeout)); err != nil {
		return wire.Open{}, err
	}
	open, err := wire.ReadOpen(st)
	if err != nil {
		return wire.Open{}, err
	}
	return open, st.SetReadDeadline(time.Time{})
}

// fulfilStream executes the command of a stream.
func (p *Proxy) fulfilStream(ctx context.Context, st *session.Stream, one *client, open wire.Open, record *connlog.Connection) error {
	record.Src.AddrPort, record.Dst.AddrPort = open.Source, open.Destination
	record.Scheme = one.prepare(st, open.Label)
	if open.Command == wire.Echo {
		return p.echoStream(st, record)
	}
	if !p.reach.permits(open.Destination) {
		return p.declineStream(st, wire.Denied, p.reach.denied(open.Destination))
	}
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	destination, err := p.onward.Dial(dialing, open.Destination)
	if errors.Is(err, context.Canceled) {
		return relay.ErrShutdown
	}
	if err != nil {
		return p.declineStream(st, dialStatus(err), err)
	}
	if _, err := st.Write([]byte{byte(wire.OK)}); err != nil {
		netx.Abort(destination)
		return err
	}
	session := &relay.Session{A: st, B: destination, Idle: p.config.IdleTimeout()}
	defer p.open.Add(record, session)()
	stop := context.AfterFunc(ctx, func() { session.Abort(relay.ErrShutdown) })
	defer stop()
	err = session.Run()
	record.BytesUp, record.BytesDown = session.Up.Load(), session.Down.Load()
	return err
}

// echoStream returns the bytes it receives, up to maxEcho.
func (p *Proxy) echoStream(st *session.Stream, record *connlog.Connection) error {
	if _, err := st.Write([]byte{byte(wire.OK)}); err != nil {
		return err
	}
	if err := st.SetDeadline(time.Now().Add(p.config.IdleTimeout())); err != nil {
		return err
	}
	n, err := io.Copy(st, io.LimitReader(st, maxEcho))
	record.BytesUp, record.BytesDown = n, n
	if err == nil {
		err = st.Close()
	}
	return err
}

// declineStream answers a status other than OK. The agent resets the stream after
// reading it.
func (p *Proxy) declineStream(st *session.Stream, status wire.Status, reason error) error {
	_ = st.SetDeadline(time.Now().Add(drainTimeout))
	if _, err := st.Write([]byte{byte(status)}); err == nil {
		_ = st.CloseWrite()
		_, _ = io.Copy(io.Discard, st)
	}
	return declined{&carrier.StatusError{Status: status}, reason}
}
