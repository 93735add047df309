package agent

import (
	"context"

	"mplab/internal/netx"
	"mplab/mpflex/internal/forward/carrier"
	"mplab/mpflex/internal/forward/dnsforward"
	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/policy"
)

// lookupWay returns how to reach the DNS server: as the rules decide for UDP to that
// server, without an owner.
func (a *Agent) lookupWay() dnsforward.Way {
	flow := a.rules.known(policy.UDP, a.config.DNSServer.AddrPort, "")
	decision := a.rules.decide(&flow)
	way := dnsforward.Way{Rule: decision.Name}
	switch decision.Action {
	case policy.Block:
		way.Refused = true
	case policy.Direct:
		way.Transport = policy.Direct.String()
		way.Open = func(ctx context.Context, request carrier.Request) (*carrier.Conn, error) {
			options := netx.Options{Mark: a.config.Mark, Congestion: a.config.CongestionControl}
			return carrier.OpenDirect(ctx, options, request.Destination)
		}
	default:
		if a.uplink == nil { // schemes have no effect without a session
			break
		}
		way.Scheme = decision.Scheme.String()
		way.Open = func(ctx context.Context, request carrier.Request) (*carrier.Conn, error) {
			request.Label = decision.Label
			request.Prepare = func(st *session.Stream) error { return a.rules.prepare(st, decision.Scheme) }
			return a.dialer.Open(ctx, request)
		}
	}
	return way
}
