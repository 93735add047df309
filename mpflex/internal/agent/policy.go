package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"mplab/internal/jsonlog"
	"mplab/internal/netx"
	"mplab/mpflex/config"
	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/forward/owner"
	"mplab/mpflex/internal/forward/sniff"
	"mplab/mpflex/internal/names"
	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/internal/transport/uplink"
	"mplab/mpflex/policy"
	"mplab/mpflex/policy/conditions"
	"mplab/mpflex/policy/schemes"
)

const (
	// decideWait bounds how long a flow waits for the properties that rules need: its
	// owner and its first bytes, which may contain the host name.
	decideWait = 50 * time.Millisecond
	// conditionsEvery is the minimum time between two reads of the phone's state.
	conditionsEvery = time.Second
	// maxAddresses bounds the addresses that are remembered with their names.
	maxAddresses = 8192
)

// rules decides how flows are treated.
type rules struct {
	engine   *policy.Engine
	state    conditions.Source
	packages *owner.Packages
	names    *names.Cache
	log      *jsonlog.Log

	mu      sync.Mutex // guards the fields below
	session *session.Session
	schemes *schemes.Set // of the session
}

// newRules reads the rule file of a configuration. status provides the throughput of
// WiFi.
func newRules(c config.Agent, log *jsonlog.Log, status func() session.Status) (*rules, error) {
	var options policy.Options
	for _, p := range c.Paths {
		options.Interfaces = append(options.Interfaces, p.Device)
	}
	engine, err := policy.Open(c.PolicyFile, options)
	if err != nil {
		return nil, err
	}
	r := &rules{engine: engine, packages: owner.NewPackages(""), names: names.NewCache(maxAddresses), log: log}
	sources := conditions.All{conditions.Battery{}, throughput(status)}
	if c.PolicyState != "" {
		sources = append(sources, conditions.NewPlan(conditions.PlanConfig{
			State: c.PolicyState, Plan: func() *policy.Plan { return engine.Policy().Plan },
		}))
	}
	r.state = conditions.All{conditions.Clock{}, conditions.NewCached(sources, conditionsEvery, func(err error) { r.note(err) })}
	r.note(nil)
	return r, nil
}

// note logs a reload of the rules or an error of a condition's source.
func (r *rules) note(err error) {
	p := r.engine.Policy()
	record := connlog.Policy{Event: "policy", T: jsonlog.Unix(time.Now()), File: p.File, Rules: len(p.Rules())}
	if err != nil {
		record.Error = err.Error()
	}
	r.log.Write(record)
}

// throughput reads the throughput of WiFi from the paths of a session.
type throughput func() session.Status

// Fill implements conditions.Source.
func (f throughput) Fill(c *policy.Conditions) error {
	best := 0.0
	for _, p := range f().Paths {
		if policy.KindOf(p.Name) == policy.WiFi {
			best = max(best, p.RateBPS)
		}
	}
	if best > 0 {
		c.WiFiThroughput = policy.Known(best)
	}
	return nil
}

// encoded returns the table of schemes in its wire format.
func (r *rules) encoded() []byte {
	table, _ := r.engine.Policy().Table().MarshalBinary() // never fails
	return table
}

// decide returns the decision for a flow.
func (r *rules) decide(flow *policy.Flow) policy.Decision {
	var now policy.Conditions
	_ = r.state.Fill(&now) // unknown conditions were logged
	return r.engine.Decide(flow, &now)
}

// known returns a flow with the properties that are known at once. name is the host
// name that the application gave, or "".
func (r *rules) known(protocol policy.Protocol, destination netip.AddrPort, name string) policy.Flow {
	flow := policy.Flow{UID: owner.Unknown.UID, Dst: destination, Protocol: protocol}
	var ok bool
	if flow.Domain, ok = names.Normalize(name); !ok {
		flow.Domain = r.names.Lookup(destination.Addr(), time.Now())
	}
	return flow
}

// owned adds the owner of a flow if a rule needs it.
func (r *rules) owned(flow *policy.Flow, search *owner.Search) {
	needs := r.engine.Policy().Needs()
	if !needs.Owner && !needs.Package {
		return
	}
	found := search.Wait(decideWait)
	flow.UID, flow.Process = found.UID, found.Process
	if needs.Package {
		flow.Packages = r.packages.Of(found.UID)
	}
}

// sniffName adds the host name from the first bytes of a connection. It replaces a name
// from DNS, which several hosts may share. If DNS gave a name, it waits only firstWait
// for the first bytes.
func sniffName(flow *policy.Flow, app *net.TCPConn) {
	buffer, n := make([]byte, sniff.Limit), 0
	wait := decideWait
	if flow.Domain != "" {
		wait = firstWait
	}
	for deadline := time.Now().Add(wait); ; {
		more := netx.Peek(app, buffer, n, deadline)
		if more <= n {
			return
		}
		n = more
		result := sniff.First(buffer[:n])
		switch result.Verdict {
		case sniff.Named:
			if name, ok := names.Normalize(result.Name); ok {
				flow.Domain = name
			}
			return
		case sniff.None:
			return
		}
	}
}

// scheme returns the scheme of a decision for a session.
func (r *rules) scheme(s *session.Session, scheme *policy.Scheme) (*session.Scheme, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session != s {
		r.session, r.schemes = s, schemes.NewSet(s.Config().Scheduler)
	}
	return r.schemes.Of(scheme)
}

// prepare sets the scheme of a decision for a stream.
func (r *rules) prepare(st *session.Stream, scheme *policy.Scheme) error {
	made, err := r.scheme(st.Session(), scheme)
	if err == nil {
		st.SetScheme(made)
	}
	return err
}

// keepRules reloads the rules on each SIGHUP and sends the proxy the new table of
// schemes. If the file has an error, the old rules stay.
func (a *Agent) keepRules(ctx context.Context) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
		}
		err := a.rules.engine.Reload()
		if err == nil && a.uplink != nil {
			err = a.tellSchemes(ctx)
		}
		a.rules.note(err)
	}
}

// tellSchemes sends the proxy the table of schemes and waits until the proxy has
// accepted it.
func (a *Agent) tellSchemes(ctx context.Context) error {
	if err := uplink.SendSchemes(ctx, a.uplink.Session(), a.rules.encoded()); err != nil {
		return fmt.Errorf("telling the proxy of the schemes: %w", err)
	}
	return nil
}

// sessionStatus returns the status of the session; the zero Status with transports that
// have none.
func (a *Agent) sessionStatus() session.Status {
	if a.uplink == nil {
		return session.Status{}
	}
	return a.uplink.Session().Status()
}

// errBlocked is the error of a connection that a rule blocks.
var errBlocked = errors.New("blocked")
