package proxy

import (
	"errors"
	"net/netip"
	"sync"

	"mplab/mpflex/identity"
	"mplab/mpflex/session"
	"mplab/mpflex/udprelay"
	"mplab/mpflex/wire"
)

// errTwice: two clients gave their sessions the same number.
var errTwice = errors.New("there is a session of this number")

// clients are the sessions that are open, with what each needs of the proxy.
type clients struct {
	relay *udprelay.Relay

	mu   sync.Mutex
	open map[wire.SessionID]*session.Session
}

// newClients makes the table of sessions, and the relay of their datagrams.
func (p *Proxy) newClients() *clients {
	c := &clients{open: make(map[wire.SessionID]*session.Session)}
	c.relay = udprelay.New(udprelay.Options{Allow: p.config.Allowed, Log: p.log, Deliver: c.deliver})
	return c
}

func (c *clients) find(id wire.SessionID) *session.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[id]
}

// begin takes a new session; its associations end with it.
func (p *Proxy) begin(_ identity.Client, id wire.SessionID, s *session.Session, _ []byte) error {
	c := p.clients
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[id] != nil {
		return errTwice
	}
	c.open[id] = s
	s.OnDatagram(func(association uint32, payload []byte) {
		if s.Err() == nil {
			c.send(id, association, payload)
		}
	})
	p.group.Go(func() {
		<-s.Done()
		c.mu.Lock()
		delete(c.open, id)
		c.mu.Unlock()
		c.relay.CloseClient(udprelay.Client(id))
	})
	return nil
}

// send sends a datagram of a client on, or ends its association.
func (c *clients) send(id wire.SessionID, association uint32, payload []byte) {
	destination, datagram, err := wire.ParseDatagram(payload)
	switch {
	case err != nil: // dropped, as anything on a network may be
	case !destination.IsValid():
		c.relay.CloseAssociation(udprelay.Client(id), association)
	default:
		_ = c.relay.Send(udprelay.Client(id), association, destination, datagram) // the relay counts and logs
	}
}

// deliver brings a datagram back to its client.
func (c *clients) deliver(client udprelay.Client, association uint32, source netip.AddrPort, datagram []byte) {
	if s := c.find(wire.SessionID(client)); s != nil {
		s.SendDatagram(association, wire.AppendDatagram(make([]byte, 0, len(datagram)+32), source, datagram))
	}
}
