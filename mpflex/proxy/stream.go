package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"mplab/mpflex/carrier"
	"mplab/mpflex/config"
	"mplab/mpflex/connlog"
	"mplab/mpflex/downlink"
	"mplab/mpflex/identity"
	"mplab/mpflex/netx"
	"mplab/mpflex/owner"
	"mplab/mpflex/relay"
	"mplab/mpflex/session"
	"mplab/mpflex/wire"
)

// newSessions makes the server of the sessions of agents.
func (p *Proxy) newSessions() error {
	known, err := identity.NewProxy([]identity.Credential{{Secret: p.config.Secret}}, identity.Options{})
	if err != nil {
		return err
	}
	p.clients = p.newClients()
	p.sessions = downlink.New(downlink.Options{
		Identity: known, Session: p.config.Session.Config(), Serve: p.serveStream, Watch: p.logStatus, Begin: p.begin,
		Log: func(e downlink.Event) {
			event := connlog.NewPathEvent(e.Event, e.Session.String())
			event.Client = e.Client
			p.log.Write(event)
		},
	})
	return nil
}

// takePath makes a path of a connection, and stays with it until its end.
func (p *Proxy) takePath(ctx context.Context, conn *net.TCPConn, transport string) {
	err := p.prepare(conn)
	if err == nil {
		err = p.sessions.Take(ctx, conn, transport == config.MPFlex)
	}
	if err != nil {
		p.refused(netx.AddrPort(conn.RemoteAddr()), err)
		_ = conn.Close()
	}
}

// serveStream serves a stream from its beginning to its record.
func (p *Proxy) serveStream(ctx context.Context, client identity.Client, st *session.Stream) {
	record := connlog.Connection{
		Event: "connection", Opened: connlog.Unix(time.Now()), Transport: config.MPFlex, ID: p.lastID.Add(1),
		UID: owner.Unknown.UID, PID: owner.Unknown.PID, CongestionControl: p.config.CongestionControl,
	}
	err := p.fulfilStream(ctx, st, &record)
	if err != nil {
		netx.Abort(st) // does nothing when the relay did it
	}
	carrier.DescribeStream(st, &record)
	record.DurationS = connlog.Since(record.Opened)
	record.Status, record.Error = carrier.Outcome(err)
	p.log.Write(record)
}

// fulfilStream does what a stream is opened for.
func (p *Proxy) fulfilStream(ctx context.Context, st *session.Stream, record *connlog.Connection) error {
	if err := st.SetReadDeadline(time.Now().Add(helloTimeout)); err != nil {
		return err
	}
	open, err := wire.ReadOpen(st)
	if err != nil {
		return err
	}
	if err := st.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	record.Src.AddrPort, record.Dst.AddrPort = open.Source, open.Destination
	one := p.clients.of(st)
	if one == nil {
		return relay.ErrShutdown
	}
	if open.Command == wire.Schemes {
		return p.takeSchemes(st, one)
	}
	record.Scheme = one.prepare(st, open.Label)
	if open.Command == wire.Echo {
		return p.echoStream(st, record)
	}
	if !p.config.Allowed.Permits(open.Destination) {
		return p.declineStream(st, wire.Denied, fmt.Errorf("destination %s is not in the allow list", open.Destination))
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

// echoStream returns what it is sent, up to maxEcho.
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

// declineStream answers with a status other than OK. The agent resets the
// stream when it has read it.
func (p *Proxy) declineStream(st *session.Stream, status wire.Status, reason error) error {
	_ = st.SetDeadline(time.Now().Add(drainTimeout))
	if _, err := st.Write([]byte{byte(status)}); err == nil {
		_ = st.CloseWrite()
		_, _ = io.Copy(io.Discard, st)
	}
	return declined{&carrier.StatusError{Status: status}, reason}
}
