package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"mplab/internal/jsonlog"
	"mplab/internal/netx"
	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/forward/carrier"
	"mplab/mpflex/internal/forward/socks"
	"mplab/mpflex/wire"
)

// errNoResolver reports a host name without a DNS server.
var errNoResolver = errors.New("a host name was given, and the configuration has no dns_server")

// errUnresolved reports a host name without an address.
var errUnresolved = errors.New("no address")

// openSocks opens the listener for SOCKS clients.
func (a *Agent) openSocks() error {
	listener, err := netx.Options{Mark: a.config.Mark}.Listen(a.config.Listen.Socks.AddrPort)
	if err != nil {
		return err
	}
	a.socks = listener
	a.socksServer = &socks.Server{
		Handler: socks.Handler{Connect: a.connectSocks},
		Users:   a.config.SocksUsers,
		Limits:  socks.Limits{Connections: a.config.MaxConnections},
		Socket:  netx.Options{Mark: a.config.Mark},
		Failed:  a.listenerFails,
		Refused: a.refuseClient,
	}
	if a.uplink != nil {
		a.socksServer.Handler.Associate = a.associate
	}
	return nil
}

// refuseClient logs a SOCKS or HTTP client that was not served.
func (a *Agent) refuseClient(source netip.AddrPort, reason error) {
	a.log.Write(connlog.Refusal{
		Event: "refused", T: jsonlog.Unix(time.Now()), Remote: connlog.Endpoint{AddrPort: source}, Reason: reason.Error(),
	})
}

// ListeningSocks returns the address of the listener for SOCKS clients, or the zero
// AddrPort.
func (a *Agent) ListeningSocks() netip.AddrPort {
	if a.socks == nil {
		return netip.AddrPort{}
	}
	return netx.AddrPort(a.socks.Addr())
}

// connectSocks carries the connection of a SOCKS client, from its request to its log
// record.
func (a *Agent) connectSocks(ctx context.Context, request socks.Request, app *net.TCPConn, reply func(socks.Code) error) {
	a.connectClient(ctx, &flow{app: app, reply: func(err error) error { return reply(replyCode(err)) }}, request.Source, request.Destination)
}

// connectClient carries the connection of a client that has named its destination, to
// its log record.
func (a *Agent) connectClient(ctx context.Context, f *flow, source netip.AddrPort, destination socks.Address) {
	record := a.record(source)
	search := a.owners.Find(source, netx.AddrPort(f.app.LocalAddr()))
	f.record, f.search, f.name = &record, search, destination.Domain
	record.Domain = f.name // also if it cannot be resolved
	err := func() (err error) {
		if record.Dst.AddrPort, err = a.resolve(ctx, destination); err != nil {
			_ = f.answer(fmt.Errorf("%w: %w", errUnresolved, err))
			return err
		}
		return a.handle(ctx, f)
	}()
	if err != nil {
		netx.Abort(f.app) // no effect if the relay or the reply has closed it
	}
	a.finish(&record, search, err)
}

// resolve returns the address of a destination. It fails with errNoResolver or the
// resolver's error.
func (a *Agent) resolve(ctx context.Context, destination socks.Address) (netip.AddrPort, error) {
	if destination.Domain == "" {
		return destination.AddrPort(), nil
	}
	if a.dns == nil {
		return netip.AddrPort{}, errNoResolver
	}
	addr, err := a.dns.Resolve(ctx, destination.Domain)
	return netip.AddrPortFrom(addr, destination.Port), err
}

// replyCode returns the SOCKS code for the result of opening a connection.
func replyCode(err error) socks.Code {
	var answer *carrier.StatusError
	switch {
	case err == nil:
		return socks.Succeeded
	case errors.Is(err, errUnresolved):
		return socks.HostUnreachable
	case errors.Is(err, errBlocked):
		return socks.NotAllowed
	case !errors.As(err, &answer):
		return socks.GeneralFailure
	}
	switch answer.Status {
	case wire.Refused:
		return socks.ConnectionRefused
	case wire.Unreachable:
		return socks.NetworkUnreachable
	case wire.Timeout:
		return socks.HostUnreachable
	case wire.Denied:
		return socks.NotAllowed
	}
	return socks.GeneralFailure
}
