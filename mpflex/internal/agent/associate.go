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

// maxNames bounds the resolved host names that an association remembers.
const maxNames = 256

// associations holds the UDP associations of SOCKS clients, by their numbers in the
// session.
type associations struct {
	mu   sync.Mutex
	last uint32
	open map[uint32]*association
}

// association is a UDP association of a SOCKS client.
type association struct {
	client          *socks.Association
	id              uint32
	names           map[string]netip.Addr // resolved host names
	up, upBytes     uint64
	down, downBytes atomic.Uint64
	owner           policy.Flow // owner of the program, for rules; each datagram adds its destination
	blocked, direct uint64
	dropped         atomic.Uint64
	decided         map[*policy.Rule]uint64 // datagrams decided, by rule
	carried         policy.Decision         // decision for the last datagram to the proxy; Rule nil: there was none
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

// deliver passes a datagram of the session to its SOCKS client.
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

// deliver passes a datagram to the client. It counts it before, so that the record of a
// client that ends with this datagram has it.
func (one *association) deliver(source netip.AddrPort, datagram []byte) {
	size := uint64(len(datagram))
	one.down.Add(1)
	one.downBytes.Add(size)
	if one.client.Send(datagram, source) != nil {
		one.down.Add(^uint64(0))
		one.downBytes.Add(-size)
		one.dropped.Add(1)
	}
}

// associate carries the datagrams of a SOCKS client over the session until the
// association ends. If the session ends, the next one continues.
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
	if one.carried.Rule != nil { // the end takes the same way as the datagrams
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

// sendAll sends the datagrams of a client until the association ends.
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

// unruled is the decision without rules: the session's default scheme.
var unruled = policy.Decision{Rule: &policy.Rule{Action: policy.Carry}}

// send applies the rules to a datagram, as each one has its own destination. name is
// the host name of the destination, or "" if the client gave an address.
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

// carryDatagram sends a datagram over the session with the scheme of a decision. An
// invalid destination ends the association.
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

// mostDecided bounds the rules in an association's record. Each reload of the rules
// makes new ones.
const mostDecided = 64

// note counts a decision.
func (one *association) note(rule *policy.Rule) {
	if _, known := one.decided[rule]; known || len(one.decided) < mostDecided {
		one.decided[rule]++
	}
}

// decisions returns the number of datagrams per rule, in descending order. Reloaded
// rules with the same name and scheme count as one.
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

// address returns the destination of a datagram. A host name keeps its address for the
// life of the association.
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
