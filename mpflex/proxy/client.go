package proxy

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"mplab/mpflex/identity"
	"mplab/mpflex/policy"
	"mplab/mpflex/policy/schemes"
	"mplab/mpflex/session"
	"mplab/mpflex/udprelay"
	"mplab/mpflex/wire"
)

// errTwice: two clients gave their sessions the same number.
var errTwice = errors.New("there is a session of this number")

// clients are the sessions that are open, with what each needs of the proxy.
type clients struct {
	relay *udprelay.Relay

	mu      sync.Mutex // guards what follows
	open    map[wire.SessionID]*client
	streams map[*session.Session]*client // the same, by their sessions
}

// client is one of them.
type client struct {
	session *session.Session
	schemes *schemes.Set

	mu    sync.Mutex
	table *policy.Table // what the labels of its streams stand for; nil: it has sent none
}

// setTable reads the client's table of schemes.
func (c *client) setTable(encoded []byte) error {
	table, err := policy.ParseTable(encoded)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.table = table
	return nil
}

// prepare gives a stream the scheme of its label, and tells it in words.
func (c *client) prepare(st *session.Stream, label byte) string {
	c.mu.Lock()
	table := c.table
	c.mu.Unlock()
	if table == nil {
		return ""
	}
	scheme, known := table.Scheme(label)
	if !known {
		scheme, _ = table.Scheme(0)
	}
	made, err := c.schemes.Of(scheme)
	if err != nil { // a scheduler that only the agent has
		return fmt.Sprintf("the session's own, not %s: %v", scheme, err)
	}
	st.SetScheme(made)
	return scheme.String()
}

// newClients makes the table of sessions, and the relay of their datagrams.
func (p *Proxy) newClients() *clients {
	c := &clients{open: make(map[wire.SessionID]*client), streams: make(map[*session.Session]*client)}
	c.relay = udprelay.New(udprelay.Options{Allow: p.config.Allowed, Log: p.log, Deliver: c.deliver})
	return c
}

func (c *clients) find(id wire.SessionID) *client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[id]
}

// of returns the client whose stream it is; nil when its session is over.
func (c *clients) of(st *session.Stream) *client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams[st.Session()]
}

// begin takes a new session; its associations end with it.
func (p *Proxy) begin(_ identity.Client, id wire.SessionID, s *session.Session, encoded []byte) error {
	one := &client{session: s, schemes: schemes.NewSet(s.Config().Scheduler)}
	if len(encoded) > 0 {
		if err := one.setTable(encoded); err != nil {
			return err
		}
	}
	c := p.clients
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[id] != nil {
		return errTwice
	}
	c.open[id], c.streams[s] = one, one
	s.OnDatagram(func(association uint32, payload []byte) {
		if s.Err() == nil {
			c.send(id, association, payload)
		}
	})
	p.group.Go(func() {
		<-s.Done()
		c.mu.Lock()
		delete(c.open, id)
		delete(c.streams, s)
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
		s.session.SendDatagram(association, wire.AppendDatagram(make([]byte, 0, len(datagram)+32), source, datagram))
	}
}

// takeSchemes reads another table of schemes of a stream, and answers.
func (p *Proxy) takeSchemes(st *session.Stream, one *client) error {
	if err := st.SetDeadline(time.Now().Add(helloTimeout)); err != nil {
		return err
	}
	encoded, err := io.ReadAll(io.LimitReader(st, wire.MaxSchemes+1))
	if err != nil {
		return err
	}
	if err := one.setTable(encoded); err != nil {
		return p.declineStream(st, wire.Bad, err)
	}
	if _, err := st.Write([]byte{byte(wire.OK)}); err != nil {
		return err
	}
	return st.Close()
}
