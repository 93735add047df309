package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"mplab/internal/netx"
	"mplab/mpflex/internal/forward/carrier"
	"mplab/mpflex/internal/forward/relay"
	"mplab/mpflex/wire"
)

// directTimeout bounds the time to connect to a destination without the proxy.
const directTimeout = 10 * time.Second

// direct connects to the destination by the phone's routes, without the proxy, and
// relays until the end.
func (a *Agent) direct(ctx context.Context, f *flow) error {
	record := f.record
	record.Transport, record.Device = "direct", ""
	dialing, cancel := context.WithTimeout(ctx, directTimeout)
	defer cancel()
	options := netx.Options{Mark: a.config.Mark, Congestion: a.config.CongestionControl}
	conn, err := options.Dial(dialing, record.Dst.AddrPort)
	if err != nil {
		err = dialError(err)
	}
	failed := f.answer(err)
	switch {
	case err != nil:
		return err
	case failed != nil:
		netx.Abort(conn)
		return failed
	}
	if _, err := conn.Write(f.first); err != nil {
		netx.Abort(conn)
		return err
	}
	record.Local.AddrPort, record.Remote.AddrPort = netx.AddrPort(conn.LocalAddr()), netx.AddrPort(conn.RemoteAddr())
	record.Subflows = 1
	s := &relay.Session{A: f.app, B: conn}
	s.Up.Add(int64(len(f.first)))
	return a.relay(ctx, s, record)
}

// dialError returns the failure of a direct connection as the status that the proxy
// would answer.
func dialError(err error) error {
	status := wire.Unreachable
	switch {
	case errors.Is(err, context.Canceled):
		return relay.ErrShutdown
	case errors.Is(err, syscall.ECONNREFUSED):
		status = wire.Refused
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		status = wire.Timeout
	}
	return fmt.Errorf("%w: %w", &carrier.StatusError{Status: status}, err)
}
