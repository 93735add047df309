package proxy

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"mplab/internal/jsonlog"
	"mplab/internal/netx"
	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/forward/udprelay"
	"mplab/mpflex/internal/transport/identity"
	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/policy"
	"mplab/mpflex/policy/schemes"
	"mplab/mpflex/wire"
)

// errTwice reports that the client's earlier session of this number has not fully
// ended.
var errTwice = errors.New("a session with this number exists")

// clients holds the open sessions.
type clients struct {
	relay *udprelay.Relay

	mu      sync.Mutex // guards what follows
	open    map[identity.SessionKey]*client
	streams map[*session.Session]*client // the same sessions by Session
}

// client is a client's session.
type client struct {
	session *session.Session
	name    udprelay.Client
	schemes *schemes.Set
	records *throttles

	mu    sync.Mutex
	table *policy.Table // defines the labels of its streams; nil: none was sent
}

// throttles limits the rate of log records that cost a client nothing, over all its
// sessions: of tables of schemes and of connections without bytes.
type throttles struct{ schemes, empty jsonlog.Throttle }

// setTable decodes and sets the client's table of schemes.
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

// generation returns the generation of the current table; 0: there is no table.
func (c *client) generation() uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.table == nil {
		return 0
	}
	return c.table.Generation
}

// scheme returns the scheme of a label and its description. nil means the session's
// default.
func (c *client) scheme(label byte) (*session.Scheme, string) {
	c.mu.Lock()
	table := c.table
	c.mu.Unlock()
	if table == nil {
		return nil, ""
	}
	scheme, known := table.Scheme(label)
	if !known {
		scheme, _ = table.Scheme(0)
	}
	made, err := c.schemes.Of(scheme)
	if err != nil { // a scheduler that only the agent has
		return nil, fmt.Sprintf("the session's own, not %s: %v", scheme, err)
	}
	return made, scheme.String()
}

// prepare sets the scheme of a label for a stream and returns its description.
func (c *client) prepare(st *session.Stream, label byte) string {
	scheme, words := c.scheme(label)
	if scheme != nil {
		st.SetScheme(scheme)
	}
	return words
}

// newClients returns the table of sessions with the relay of their datagrams.
func (p *Proxy) newClients() *clients {
	c := &clients{open: make(map[identity.SessionKey]*client), streams: make(map[*session.Session]*client)}
	c.relay = udprelay.New(udprelay.Options{
		Permits: p.reach.permits, Log: p.log, Deliver: c.deliver, Limits: udprelay.Limits{SocketsPerClient: p.config.PerClient.UDPSockets},
	})
	return c
}

func (c *clients) find(key identity.SessionKey) *client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[key]
}

// of returns the session of a stream, or nil if it is over.
func (c *clients) of(st *session.Stream) *client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams[st.Session()]
}

// begin adds a new session. Its UDP associations end with it.
func (p *Proxy) begin(who identity.Client, id wire.SessionID, s *session.Session, encoded []byte) error {
	key := who.Key(id)
	one := &client{session: s, name: udprelay.Client{SessionKey: key, Name: who.Name}, schemes: schemes.NewSet(s.Config().Scheduler)}
	if len(encoded) > 0 {
		if err := one.setTable(encoded); err != nil {
			return err
		}
	}
	c := p.clients
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[key] != nil {
		return errTwice
	}
	for other, its := range c.open {
		if other.Client == key.Client {
			one.records = its.records
		}
	}
	if one.records == nil {
		one.records = &throttles{}
	}
	c.open[key], c.streams[s] = one, one
	s.OnDatagram(func(d session.Datagram) {
		if s.Err() == nil {
			c.send(one.name, d)
		}
	})
	p.group.Go(func() {
		<-s.Done()
		c.mu.Lock()
		delete(c.open, key)
		delete(c.streams, s)
		c.mu.Unlock()
		c.relay.CloseClient(one.name)
	})
	return nil
}

// send sends a client's datagram to its destination, or ends the association.
func (c *clients) send(of udprelay.Client, d session.Datagram) {
	destination, datagram, err := wire.ParseDatagram(d.Payload)
	switch {
	case err != nil: // dropped, as any network may
	case !destination.IsValid():
		c.relay.CloseAssociation(of, d.Association)
	default:
		_ = c.relay.Send(of, d.Association, destination, d.Label, datagram) // the relay counts and logs errors
	}
}

// deliver sends a datagram to its client, with the scheme of its label.
func (c *clients) deliver(client udprelay.Client, association uint32, source netip.AddrPort, label byte, datagram []byte) {
	one := c.find(client.SessionKey)
	if one == nil {
		return
	}
	scheme, _ := one.scheme(label)
	one.session.SendDatagram(session.Datagram{
		Association: association, Label: label, Payload: wire.AppendDatagram(make([]byte, 0, len(datagram)+32), source, datagram),
	}, scheme)
}

// takeSchemes reads a new table of schemes from a stream, answers it and logs it.
func (p *Proxy) takeSchemes(st *session.Stream, one *client) {
	err := p.replaceTable(st, one)
	if err != nil {
		netx.Abort(st)
	}
	now := time.Now()
	suppressed, ok := one.records.schemes.Take(now)
	if !ok {
		return
	}
	record := connlog.Schemes{
		Event: "schemes", T: jsonlog.Unix(now), Suppressed: suppressed, Session: one.name.Session.String(), Client: one.name.Name, Generation: one.generation(),
	}
	if err != nil {
		record.Error = err.Error()
	}
	p.log.Write(record)
}

// replaceTable reads a table to the end of a stream and makes it the current one.
func (p *Proxy) replaceTable(st *session.Stream, one *client) error {
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
