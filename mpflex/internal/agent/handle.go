package agent

import (
	"context"
	"fmt"
	"net"
	"time"

	"mplab/internal/netx"
	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/forward/carrier"
	"mplab/mpflex/internal/forward/owner"
	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/policy"
	"mplab/mpflex/wire"
)

// firstWait bounds how long to wait for the application's first bytes after an
// immediate reply, so that they leave with the request. Applications on the same
// machine send them at once or wait for the server.
const firstWait = 10 * time.Millisecond

// flow is an application's connection.
type flow struct {
	app    *net.TCPConn
	record *connlog.Connection // has source and destination
	search *owner.Search
	name   string // host name of the destination; "" if the application gave an address
	first  []byte // sent before the bytes of app
	// reply tells the application whether its connection was opened. nil: it expects no
	// reply, or has had it.
	reply func(error) error
}

// answer sends the reply, at most once.
func (f *flow) answer(err error) error {
	reply := f.reply
	if reply == nil {
		return nil
	}
	f.reply = nil
	return reply(err)
}

// handle decides how to treat a connection, and carries, connects or blocks it.
func (a *Agent) handle(ctx context.Context, f *flow) error {
	request := carrier.Request{
		Command: wire.Connect, Source: f.record.Src.AddrPort, Destination: f.record.Dst.AddrPort,
		First: f.first, Early: f.app,
	}
	f.record.Domain = f.name
	if a.rules != nil {
		decision, err := a.judge(f)
		if err != nil {
			return err
		}
		switch decision.Action {
		case policy.Block:
			err := fmt.Errorf("%w: %s", errBlocked, decision.Why())
			_ = f.answer(err)
			return err
		case policy.Direct:
			return a.direct(ctx, f)
		}
		if a.uplink != nil {
			f.record.Scheme = decision.Scheme.String()
		}
		request.Label = decision.Label
		request.Prepare = func(st *session.Stream) error { return a.rules.prepare(st, decision.Scheme) }
	}
	if f.reply != nil && a.uplink != nil { // the reply costs no round trip, as opening a stream costs none
		if a.uplink.Session().Full() {
			_ = f.answer(session.ErrStreams)
			return session.ErrStreams
		}
		if err := f.answer(nil); err != nil {
			return err
		}
		if f.first == nil {
			var first [1]byte
			netx.Peek(f.app, first[:], 0, time.Now().Add(firstWait))
		}
	}
	return a.carry(ctx, f, request)
}

// judge collects what the rules need and decides. If they need the host name and an
// immediate reply costs nothing, it replies first: applications may send no byte before
// the reply.
func (a *Agent) judge(f *flow) (policy.Decision, error) {
	known := a.rules.known(policy.TCP, f.record.Dst.AddrPort, f.name)
	a.rules.owned(&known, f.search)
	if f.name == "" && f.first == nil && a.rules.engine.Policy().Needs().Domain && (f.reply == nil || a.uplink != nil) {
		if err := f.answer(nil); err != nil {
			return policy.Decision{}, err
		}
		sniffName(&known, f.app)
	}
	decision := a.rules.decide(&known)
	f.record.Domain, f.record.Rule = known.Domain, decision.Name
	return decision, nil
}
