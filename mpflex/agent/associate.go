package agent

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"mplab/mpflex/connlog"
	"mplab/mpflex/netx"
	"mplab/mpflex/owner"
	"mplab/mpflex/policy"
	"mplab/mpflex/socks"
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
	blocked         uint64
	dropped         atomic.Uint64
}

func (s *associations) add(client *socks.Association) *association {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = make(map[uint32]*association)
	}
	for s.last++; s.last == 0 || s.open[s.last] != nil; s.last++ {
	}
	one := &association{client: client, id: s.last, names: make(map[string]netip.Addr)}
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

// deliver gives a SOCKS client a datagram that came back.
func (s *associations) deliver(id uint32, payload []byte) {
	one := s.find(id)
	if one == nil {
		return
	}
	source, datagram, err := wire.ParseDatagram(payload)
	if err != nil || !source.IsValid() || one.client.Send(datagram, source) != nil {
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
		Event: "udp", Opened: connlog.Unix(time.Now()), Src: connlog.Endpoint{AddrPort: request.Source},
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
	a.uplink.Session().SendDatagram(one.id, wire.AppendDatagram(nil, netip.AddrPort{}, nil))
	found := search.Wait(ownerWait)
	record.UID, record.PID, record.Process = found.UID, found.PID, found.Process
	record.DatagramsUp, record.BytesUp = one.up, one.upBytes
	record.DatagramsDown, record.BytesDown = one.down.Load(), one.downBytes.Load()
	record.Dropped = one.dropped.Load()
	record.Blocked = one.blocked
	record.DurationS = connlog.Since(record.Opened)
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
	var message []byte
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
		if a.blocks(one, to, destination.Domain) {
			one.blocked++
			continue
		}
		message = wire.AppendDatagram(message[:0], to, datagram)
		if !a.uplink.Session().SendDatagram(one.id, message) {
			one.dropped.Add(1)
			continue
		}
		one.up++
		one.upBytes += uint64(len(datagram))
	}
}

// blocks tells whether a rule blocks a datagram. All others are carried, those
// too that a rule would let past the proxy, and by the session's own scheme.
func (a *Agent) blocks(one *association, to netip.AddrPort, name string) bool {
	if a.rules == nil {
		return false
	}
	flow := a.rules.known(policy.UDP, to, name)
	flow.UID, flow.Process, flow.Packages = one.owner.UID, one.owner.Process, one.owner.Packages
	return a.rules.decide(&flow).Action == policy.Block
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
