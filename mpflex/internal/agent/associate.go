package agent

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"mplab/internal/netx"
	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/forward/owner"
	"mplab/mpflex/internal/forward/socks"
	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/policy"
	"mplab/mpflex/wire"
)

// maxNames is how many host names of an association are kept with their
// addresses.
const maxNames = 256

// associations are the UDP associations of SOCKS clients, by the numbers that
// the proxy knows them by.
type associations struct {
	mu   sync.Mutex
	last uint32
	open map[uint32]*association
}

// association is one of them.
type association struct {
	client          *socks.Association
	id              uint32
	names           map[string]netip.Addr // that were resolved
	up, upBytes     uint64
	down, downBytes atomic.Uint64
	owner           policy.Flow // what rules may ask of the program; its destination is that of each datagram
	blocked, direct uint64
	dropped         atomic.Uint64
	decided         map[*policy.Rule]uint64 // how many datagrams each rule decided over
	carried         policy.Decision         // over the last one that went to the proxy; none: none did
}

func (s *associations) add(client *socks.Association) *association {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = make(map[uint32]*association)
	}
	for s.last++; s.last == 0 || s.open[s.last] != nil; s.last++ {
	}
	one := &association{client: client, id: s.last, names: make(map[string]netip.Addr), decided: make(map[*policy.Rule]uint64)}
	s.open[s.last] = one
	return one
}

func (s *associations) find(id uint32) *association {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[id]
}

func (s *associations) remove(id uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, id)
}

// deliver gives a SOCKS client a datagram that came back over the session.
func (s *associations) deliver(d session.Datagram) {
	one := s.find(d.Association)
	if one == nil {
		return
	}
	source, datagram, err := wire.ParseDatagram(d.Payload)
	if err != nil || !source.IsValid() {
		one.dropped.Add(1)
		return
	}
	one.deliver(source, datagram)
}

// deliver gives the client a datagram.
func (one *association) deliver(source netip.AddrPort, datagram []byte) {
	if one.client.Send(datagram, source) != nil {
		one.dropped.Add(1)
		return
	}
	one.down.Add(1)
	one.downBytes.Add(uint64(len(datagram)))
}

// associate carries the datagrams of a SOCKS client over the session, until the
// association ends. Another session takes over from one that has ended.
func (a *Agent) associate(ctx context.Context, request socks.Request, client *socks.Association) {
	record := connlog.Association{
		Event: "udp", Opened: connlog.Now(), Src: connlog.Endpoint{AddrPort: request.Source},
		UID: owner.Unknown.UID, PID: owner.Unknown.PID,
	}
	search := a.owners.Find(request.Source, netx.AddrPort(a.socks.Addr()))
	one := a.associations.add(client)
	record.Association = one.id
	if a.rules != nil {
		one.owner = a.rules.known(policy.UDP, netip.AddrPort{}, "")
		a.rules.owned(&one.owner, search)
	}
	err := a.sendAll(ctx, one)
	a.associations.remove(one.id)
	a.past.end(one)
	if one.carried.Rule != nil { // its end goes where its datagrams went
		a.carryDatagram(one, netip.AddrPort{}, one.carried, nil)
	}
	found := search.Wait(ownerWait)
	record.UID, record.PID, record.Process = found.UID, found.PID, found.Process
	record.DatagramsUp, record.BytesUp = one.up, one.upBytes
	record.DatagramsDown, record.BytesDown = one.down.Load(), one.downBytes.Load()
	record.Dropped = one.dropped.Load()
	record.Blocked, record.Direct, record.Rules = one.blocked, one.direct, decisions(one.decided)
	record.DurationS = record.Opened.Since()
	switch {
	case errors.Is(err, socks.ErrIdle):
		record.Status = connlog.Timeout
	case errors.Is(err, socks.ErrEnded):
		record.Status = connlog.Closed
	default:
		record.Status = connlog.Shutdown
	}
	a.log.Write(record)
}

// sendAll sends on what comes from a client.
func (a *Agent) sendAll(ctx context.Context, one *association) error {
	for {
		datagram, destination, err := one.client.Receive()
		if err != nil {
			return err
		}
		to, err := a.address(ctx, one, destination)
		if err != nil {
			one.dropped.Add(1)
			continue
		}
		a.send(one, to, destination.Domain, datagram)
	}
}

// unruled is the decision where there are no rules: by the session's own scheme.
var unruled = policy.Decision{Rule: &policy.Rule{Action: policy.Carry}}

// send does with a datagram what the rules say: each has a destination of its
// own. name is that of the destination, if the client gave one.
func (a *Agent) send(one *association, to netip.AddrPort, name string, datagram []byte) {
	decision := unruled
	if a.rules != nil {
		flow := a.rules.known(policy.UDP, to, name)
		flow.UID, flow.Process, flow.Packages = one.owner.UID, one.owner.Process, one.owner.Packages
		decision = a.rules.decide(&flow)
		one.note(decision.Rule)
	}
	sent := false
	switch decision.Action {
	case policy.Block:
		one.blocked++
		return
	case policy.Direct:
		one.direct++
		sent = a.past.send(one, to, datagram)
	default:
		one.carried = decision
		sent = a.carryDatagram(one, to, decision, datagram)
	}
	if !sent {
		one.dropped.Add(1)
		return
	}
	one.up++
	one.upBytes += uint64(len(datagram))
}

// carryDatagram sends a datagram over the session by the scheme of a decision;
// without a destination it ends the association.
func (a *Agent) carryDatagram(one *association, to netip.AddrPort, decision policy.Decision, datagram []byte) bool {
	s := a.uplink.Session()
	var scheme *session.Scheme
	if decision.Scheme != nil {
		var err error
		if scheme, err = a.rules.scheme(s, decision.Scheme); err != nil {
			return false
		}
	}
	payload := wire.AppendDatagram(make([]byte, 0, len(datagram)+32), to, datagram)
	return s.SendDatagram(session.Datagram{Association: one.id, Label: decision.Label, Payload: payload}, scheme)
}

// mostDecided bounds how many rules an association's record has: they can be
// read again many times while it lasts.
const mostDecided = 64

// note counts a decision.
func (one *association) note(rule *policy.Rule) {
	if _, known := one.decided[rule]; known || len(one.decided) < mostDecided {
		one.decided[rule]++
	}
}

// decisions tells what rules decided, those that decided most first. Rules that
// were read again and say the same are one.
func decisions(taken map[*policy.Rule]uint64) []connlog.Decided {
	var list []connlog.Decided
	for rule, n := range taken {
		what := connlog.Decided{Rule: rule.Name, Scheme: rule.Action.String()}
		if rule.Scheme != nil {
			what.Scheme = rule.Scheme.String()
		}
		same := func(d connlog.Decided) bool { return d.Rule == what.Rule && d.Scheme == what.Scheme }
		i := slices.IndexFunc(list, same)
		if i < 0 {
			i, list = len(list), append(list, what)
		}
		list[i].Datagrams += n
	}
	slices.SortFunc(list, func(a, b connlog.Decided) int {
		return cmp.Or(cmp.Compare(b.Datagrams, a.Datagrams), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Scheme, b.Scheme))
	})
	return list
}

// address returns where a datagram goes. A name keeps its address as long as
// the association lasts.
func (a *Agent) address(ctx context.Context, one *association, destination socks.Address) (netip.AddrPort, error) {
	if known, ok := one.names[destination.Domain]; ok && destination.Domain != "" {
		return netip.AddrPortFrom(known, destination.Port), nil
	}
	to, err := a.resolve(ctx, destination)
	if err == nil && destination.Domain != "" && len(one.names) < maxNames {
		one.names[destination.Domain] = to.Addr()
	}
	return to, err
}
