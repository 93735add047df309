// Package downlink is the proxy's side of sessions: it makes paths of
// connections, and gives the streams that agents open to whoever serves them.
package downlink

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"mplab/mpflex/identity"
	"mplab/mpflex/netx"
	"mplab/mpflex/session"
	"mplab/mpflex/wire"
)

// helloTimeout bounds how long a connection may take to say what it is.
const helloTimeout = 5 * time.Second

// recordOverhead is what TLS 1.3 adds to a write (RFC 8446 §5.2).
const recordOverhead = 22

// Options of a [Server].
type Options struct {
	Identity *identity.Proxy
	Session  session.Config
	Most     int // sessions of a client at a time; default 16
	// Serve serves a stream and closes it. It is called in a goroutine of its own.
	Serve func(ctx context.Context, client identity.Client, st *session.Stream)
	// Begin is told of each new session, before its first stream; nil: nobody.
	Begin func(client identity.Client, id wire.SessionID, s *session.Session, schemes []byte) error
	Log   func(Event) // nil: nobody
	// Watch is called, in a goroutine of its own, with each session; it must
	// return soon after the session is done. nil: nobody watches.
	Watch func(Held)
}

// Event is what happens to the paths of a client.
type Event struct {
	session.Event
	Client  string
	Session wire.SessionID
	Remote  net.Addr
}

// Server keeps the sessions of a proxy.
type Server struct {
	options Options
	ctx     context.Context
	cancel  context.CancelFunc
	replay  *wire.Replay
	serving sync.WaitGroup

	mu       sync.Mutex
	sessions map[identity.SessionKey]*held
	draining bool
}

// held is a session that is kept.
type held struct {
	session *session.Session
	client  identity.Client
	birth   [wire.BirthSize]byte
	newest  map[uint8]uint32 // incarnation of each path
	heard   time.Time
}

// mostSessions is the default of Options.Most.
const mostSessions = 16

// New returns a server without sessions.
func New(o Options) *Server {
	if o.Most == 0 {
		o.Most = mostSessions
	}
	if o.Log == nil {
		o.Log = func(Event) {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Server{
		options: o, ctx: ctx, cancel: cancel, replay: wire.NewReplay(wire.DefaultReplayEntries), sessions: map[identity.SessionKey]*held{},
	}
}

// Take makes a path of a connection, and returns when it has ended: Close ends
// it, too. Private connections begin with TLS. An error says why the connection
// became no path; it is closed then. The end of ctx ends nothing but that.
func (d *Server) Take(ctx context.Context, conn *net.TCPConn, private bool) error {
	path, err := d.attach(ctx, conn, private)
	if err != nil {
		netx.Abort(conn)
		return err
	}
	<-path.Done()
	return nil
}

// attach hears what a connection is to be, and answers.
func (d *Server) attach(ctx context.Context, conn *net.TCPConn, private bool) (*session.Path, error) {
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	if err := session.Prepare(conn); err != nil {
		return nil, err
	}
	link, clients, binding, err := d.secure(ctx, conn, private)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	secrets := make([][]byte, len(clients))
	for i := range clients {
		secrets[i] = clients[i].Secret
	}
	attach, which, err := wire.ReadAttach(link.Conn, binding, secrets...)
	if err != nil {
		return nil, err
	}
	if err := d.replay.Once(attach.Time, attach.Nonce, time.Now()); err != nil {
		return nil, err
	}
	client := clients[which]
	link.ID, link.Incarnation, link.Name, link.Backup = attach.Path, attach.Incarnation, attach.Interface, attach.Backup
	h, status := d.find(client, attach)
	answer := wire.Attached{Status: status}
	if status == wire.OK {
		c := h.session.Config()
		answer.Birth = h.birth
		answer.Settings = wire.Settings{MaxStreams: uint32(c.MaxStreams), InitialWindow: uint32(c.InitialWindow), KeepAlive: c.Keepalive}
	}
	b, err := answer.Append(nil, client.Secret, binding, attach.Nonce)
	if err != nil {
		return nil, err
	}
	if _, err := link.Conn.Write(b); err != nil {
		return nil, err
	}
	if status != wire.OK {
		_ = conn.CloseWrite() // so that a reset does not overtake the answer
		return nil, fmt.Errorf("client %q: %s", client.Name, status)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	return h.session.Attach(link)
}

// secure makes a connection private when it is to be, and says who the client
// may be.
func (d *Server) secure(ctx context.Context, conn *net.TCPConn, private bool) (session.Link, []identity.Client, wire.Binding, error) {
	if !private {
		return session.Link{Conn: conn, TCP: conn}, d.options.Identity.Clients(), wire.Unbound, nil
	}
	counter := &session.Counter{Conn: conn}
	secure, err := d.options.Identity.Handshake(ctx, counter)
	if err != nil {
		return session.Link{}, nil, wire.Unbound, err
	}
	return session.Link{Conn: secure, TCP: conn, Counter: counter, Overhead: recordOverhead}, []identity.Client{secure.Client}, secure.Binding, nil
}

// find finds the session of an attach, or makes it.
func (d *Server) find(client identity.Client, attach wire.Attach) (*held, wire.Status) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := client.Key(attach.Session)
	h := d.sessions[key]
	switch {
	case d.draining:
		return nil, wire.Draining
	case h == nil && !attach.Fresh:
		return nil, wire.UnknownSession
	case h == nil:
		if !d.room(client) {
			return nil, wire.Limit
		}
		var err error
		if h, err = d.begin(client, attach); err != nil {
			return nil, wire.Bad
		}
		d.sessions[key] = h
	case h.newest[attach.Path] >= attach.Incarnation:
		return nil, wire.Stale
	}
	h.newest[attach.Path], h.heard = attach.Incarnation, time.Now()
	return h, wire.OK
}

// room makes room for one more session of a client: those without paths or
// streams go first, the one that was heard of least lately before the others.
func (d *Server) room(client identity.Client) bool {
	n, oldest := 0, (*held)(nil)
	for key, h := range d.sessions {
		if key.Client != client.ID {
			continue
		}
		n++
		if status := h.session.Status(); status.Streams == 0 && (oldest == nil || h.heard.Before(oldest.heard)) {
			oldest = h
		}
	}
	if n < d.options.Most {
		return true
	}
	if oldest == nil {
		return false
	}
	d.serving.Go(func() { _ = oldest.session.Close() })
	return true
}

// begin makes a session and serves its streams.
func (d *Server) begin(client identity.Client, attach wire.Attach) (*held, error) {
	config := d.options.Session
	config.InitialWindow = int(attach.Settings.InitialWindow)
	config.Log = func(e session.Event) { d.options.Log(Event{Event: e, Client: client.Name, Session: attach.Session}) }
	s, err := session.New(session.Proxy, config)
	if err != nil {
		return nil, err
	}
	if d.options.Begin != nil {
		if err := d.options.Begin(client, attach.Session, s, attach.Settings.Schemes); err != nil {
			_ = s.Close()
			return nil, err
		}
	}
	d.serving.Go(func() {
		for {
			st, err := s.Accept(d.ctx)
			if err != nil {
				break
			}
			d.serving.Go(func() { d.options.Serve(d.ctx, client, st) })
		}
		<-s.Done()
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.sessions, client.Key(attach.Session))
	})
	if d.options.Watch != nil {
		d.serving.Go(func() { d.options.Watch(Held{client, attach.Session, s}) })
	}
	h := &held{session: s, client: client, newest: map[uint8]uint32{}}
	_, _ = rand.Read(h.birth[:]) // never fails
	return h, nil
}

// Close ends all sessions, and waits until their streams were served.
func (d *Server) Close() {
	d.mu.Lock()
	d.draining = true
	var all []*session.Session
	for _, h := range d.sessions {
		all = append(all, h.session)
	}
	d.mu.Unlock()
	d.cancel()
	for _, s := range all {
		_ = s.Close()
	}
	d.serving.Wait()
}

// Held is a session of a server.
type Held struct {
	Client  identity.Client
	ID      wire.SessionID
	Session *session.Session
}

// Sessions are those that are held now, in the order of their clients and
// numbers.
func (d *Server) Sessions() []Held {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]Held, 0, len(d.sessions))
	for key, h := range d.sessions {
		all = append(all, Held{h.client, key.Session, h.session})
	}
	slices.SortFunc(all, func(a, b Held) int {
		return cmp.Or(strings.Compare(a.Client.Name, b.Client.Name), bytes.Compare(a.ID[:], b.ID[:]))
	})
	return all
}
