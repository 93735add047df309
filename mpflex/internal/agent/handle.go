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

// firstWait bounds how long a stream that was answered at once waits for the
// first bytes of its application, which then leave together with the request.
// Applications on the same machine send them at once, or wait for the server.
const firstWait = 10 * time.Millisecond

// flow is an application's connection that is to be carried.
type flow struct {
	app    *net.TCPConn
	record *connlog.Connection // with source and destination
	search *owner.Search
	name   string // of the destination, as the application gave it; "" when it gave an address
	first  []byte // goes before what can be read from app
	// reply tells the application how the opening ended; nil when it waits for
	// no answer, or has had one.
	reply func(error) error
}

// answer replies, once.
func (f *flow) answer(err error) error {
	reply := f.reply
	if reply == nil {
		return nil
	}
	f.reply = nil
	return reply(err)
}

// handle decides what becomes of a connection, and does it.
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
	if f.reply != nil && a.uplink != nil { // opening a stream costs no round trip, so nor does this
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

// judge finds out what the rules ask for, and decides. An application that
// says nothing before it is answered is answered first, if that costs nothing
// and the rules ask for what it says.
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
