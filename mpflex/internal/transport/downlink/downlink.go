package downlink

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"mplab/internal/netx"
	"mplab/mpflex/internal/transport/identity"
	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/wire"
)

// errDraining is the reason of sessions that end with the proxy.
var errDraining = errors.New("the proxy is ending")

// helloTimeout bounds the time until a connection's attach has arrived.
const helloTimeout = 5 * time.Second

// recordOverhead is how many bytes TLS 1.3 adds to a write (RFC 8446 §5.2).
const recordOverhead = 22

// Options of a [Server].
type Options struct {
	Identity *identity.Proxy
	Session  session.Config
	Budget   *session.Budget // of all sessions, with an account for each client; nil: each session has its own
	Most     int             // sessions per client; default 16
	// Connections and Streams count and bound those of each client. nil: no bound.
	Connections, Streams *identity.Quota
	// Serve serves a stream and closes it. It is called in a separate goroutine.
	Serve func(ctx context.Context, client identity.Client, st *session.Stream)
	// Begin is called with each new session before its first stream. An error refuses
	// the session. nil: no call.
	Begin func(client identity.Client, id wire.SessionID, s *session.Session, schemes []byte) error
	Log   func(Event) // nil: no log
	// Refused is called for each stream that is reset because its client has too many.
	// remote is the address of the session's first path. It must not block. nil: no
	// call.
	Refused func(client identity.Client, remote net.Addr, reason error)
	// Watch is called with each session in a separate goroutine. It must return soon
	// after the session is done. nil: no call.
	Watch func(Held)
}

// Event is an event of a client's path or session.
type Event struct {
	session.Event
	Client  string
	Session wire.SessionID
	Remote  net.Addr
}

// Server holds the sessions of a proxy.
type Server struct {
	options Options
	ctx     context.Context
	cancel  context.CancelFunc
	serving sync.WaitGroup

	mu       sync.Mutex
	sessions map[identity.SessionKey]*held
	draining bool
}

// held is a session of a server.
type held struct {
	session *session.Session
	client  identity.Client
	birth   [wire.BirthSize]byte
	newest  map[uint8]uint32 // last incarnation of each path, by path number
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
	if o.Refused == nil {
		o.Refused = func(identity.Client, net.Addr, error) {}
	}
	for _, quota := range []**identity.Quota{&o.Connections, &o.Streams} {
		if *quota == nil {
			*quota = &identity.Quota{}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Server{
		options: o, ctx: ctx, cancel: cancel, sessions: map[identity.SessionKey]*held{},
	}
}

// Take makes a connection a path and returns when the path has ended. Close ends the
// path. If private, the connection starts with TLS. If the connection does not become a
// path, Take closes it and returns the reason. ctx ends only the attach, not the path.
func (d *Server) Take(ctx context.Context, conn *net.TCPConn, private bool) error {
	v := &visit{server: d, conn: conn}
	defer v.leave()
	path, err := v.attach(ctx, private)
	if err != nil {
		netx.Abort(conn)
		return err
	}
	<-path.Done()
	return nil
}

// entering is how many connections above its bound a client may have that are not paths
// yet. They get an answer that states the limit.
const entering = 16

// errConnections reports a client that has too many connections.
var errConnections = errors.New("the client's limit of connections is reached")

// visit is a connection from its accept to the end of its path.
type visit struct {
	server *Server
	conn   *net.TCPConn
	client *identity.Client // nil: not identified
}

// admit counts the connection for the identified client.
func (v *visit) admit(client identity.Client) error {
	if !v.server.options.Connections.Take(client.ID, entering) {
		return errConnections
	}
	v.client = &client
	return nil
}

// leave undoes admit.
func (v *visit) leave() {
	if v.client != nil {
		v.server.options.Connections.Give(v.client.ID)
	}
}

// attach reads the attach of a connection, answers it, and makes the connection a path
// if the answer is ok.
func (v *visit) attach(ctx context.Context, private bool) (*session.Path, error) {
	d, conn := v.server, v.conn
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	if err := session.Prepare(conn); err != nil {
		return nil, err
	}
	link, binding, err := v.secure(ctx, private)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	attach, client, err := v.introduce(link.Conn, binding)
	if err != nil {
		return nil, err
	}
	link.ID, link.Incarnation, link.Name, link.Backup = attach.Path, attach.Incarnation, attach.Interface, attach.Backup
	link.Keepalive = attach.Settings.KeepAlive
	h, status, err := d.find(client, conn.RemoteAddr(), attach)
	if err != nil {
		return nil, client.Fault(err)
	}
	answer := wire.Attached{Status: status}
	if status == wire.OK {
		answer.Birth, answer.Settings = h.birth, d.settings(h.session.Config())
		answer.Settings.KeepAlive = cmp.Or(attach.Settings.KeepAlive, answer.Settings.KeepAlive)
	}
	b, err := answer.Append(nil, client.Secret, binding, attach.Nonce)
	if err != nil {
		return nil, err
	}
	if _, err := link.Conn.Write(b); err != nil {
		return nil, err
	}
	if status != wire.OK {
		seeOff(conn)
		return nil, client.Fault(errors.New(status.String()))
	}
	_ = conn.SetDeadline(time.Time{})
	path, err := h.session.Attach(link)
	if err != nil {
		h.session.GiveUp(link.ID, link.Incarnation) // the agent may have made it a path
	}
	return path, err
}

// settings returns the settings of an answer. The limit of streams is the lower of
// those of the session and of the client.
func (d *Server) settings(c session.Config) wire.Settings {
	streams := c.MaxStreams
	if most := d.options.Streams.Most; most > 0 {
		streams = min(streams, most)
	}
	return wire.Settings{MaxStreams: uint32(streams), InitialWindow: uint32(c.InitialWindow), KeepAlive: c.Keepalive}
}

// drainTimeout bounds how long a connection is read after an answer, so that a reset
// does not overtake the answer.
const drainTimeout = time.Second

// seeOff closes the sending direction after an answer and reads the rest.
func seeOff(conn *net.TCPConn) {
	_ = conn.SetReadDeadline(time.Now().Add(drainTimeout))
	_ = conn.CloseWrite()
	_, _ = io.Copy(io.Discard, conn)
}

// secure starts TLS if private. TLS also identifies the client.
func (v *visit) secure(ctx context.Context, private bool) (session.Link, wire.Binding, error) {
	if !private {
		return session.Link{Conn: v.conn, TCP: v.conn}, wire.Unbound, nil
	}
	counter := &session.Counter{Conn: v.conn}
	secure, err := v.server.options.Identity.Handshake(ctx, counter, v.admit)
	if err != nil {
		return session.Link{}, wire.Unbound, err
	}
	return session.Link{Conn: secure, TCP: v.conn, Counter: counter, Overhead: recordOverhead}, secure.Binding, nil
}

// introduce reads the attach of a connection and identifies its client.
func (v *visit) introduce(conn net.Conn, binding wire.Binding) (wire.Attach, identity.Client, error) {
	known := v.server.options.Identity
	if v.client == nil {
		defer known.Stranger(v.conn)()
	}
	attach, client, err := known.ReadAttach(conn, binding, v.client)
	if errors.Is(err, wire.ErrSkew) { // the message is authentic, so its sender may get the time
		_, _ = conn.Write(wire.AppendSkewedPath(nil, client.Secret, wire.Unbound, attach.Nonce, client.Now()))
		seeOff(v.conn)
	}
	if err == nil && v.client == nil {
		if err = v.admit(client); err != nil {
			err = client.Fault(err)
		}
	}
	return attach, client, err
}

// find returns the session of an attach and makes it if necessary. If it returns an
// error, no answer must be sent.
func (d *Server) find(client identity.Client, remote net.Addr, attach wire.Attach) (*held, wire.Status, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := client.Key(attach.Session)
	h := d.sessions[key]
	switch {
	case d.draining:
		return nil, wire.Draining, nil
	case !d.options.Identity.Knows(client): // removed in the meantime
		return nil, 0, ErrRemoved
	case attach.Path >= wire.MaxPaths:
		return nil, wire.Bad, nil
	case d.options.Connections.Over(client.ID):
		return nil, wire.Limit, nil
	case h == nil && !attach.Fresh:
		return nil, wire.UnknownSession, nil
	case h == nil:
		if !d.room(client) {
			return nil, wire.Limit, nil
		}
		var err error
		if h, err = d.begin(client, remote, attach); err != nil {
			return nil, wire.Bad, nil
		}
		d.sessions[key] = h
	case h.newest[attach.Path] >= attach.Incarnation:
		return nil, wire.Stale, nil
	}
	h.newest[attach.Path], h.heard = attach.Incarnation, time.Now()
	return h, wire.OK, nil
}

// room makes room for one more session of a client. If the client has Most sessions, it
// ends the one without streams whose last attach is oldest. It returns false if all
// have streams.
func (d *Server) room(client identity.Client) bool {
	n, oldest, at := 0, (*held)(nil), identity.SessionKey{}
	for key, h := range d.sessions {
		if key.Client != client.ID {
			continue
		}
		n++
		if status := h.session.Status(); status.Streams == 0 && (oldest == nil || h.heard.Before(oldest.heard)) {
			oldest, at = h, key
		}
	}
	if n < d.options.Most {
		return true
	}
	if oldest == nil {
		return false
	}
	delete(d.sessions, at)
	d.serving.Go(func() {
		oldest.session.End(errReplaced)
		_ = oldest.session.Close()
	})
	return true
}

// begin makes a session and serves its streams.
func (d *Server) begin(client identity.Client, remote net.Addr, attach wire.Attach) (*held, error) {
	config := d.options.Session
	if d.options.Budget != nil {
		config.Account = d.account(client)
	}
	config.Incoming = places{d, client, remote}
	config.Log = func(e session.Event) { d.options.Log(Event{Event: e, Client: client.Name, Session: attach.Session}) }
	s, err := session.New(session.Proxy, config)
	if err != nil {
		return nil, err
	}
	s.SetPeer(session.Peer{InitialWindow: int(attach.Settings.InitialWindow), MaxStreams: int(attach.Settings.MaxStreams)})
	if d.options.Begin != nil {
		if err := d.options.Begin(client, attach.Session, s, attach.Settings.Schemes); err != nil {
			_ = s.Close()
			return nil, err
		}
	}
	h := &held{session: s, client: client, newest: map[uint8]uint32{}}
	_, _ = rand.Read(h.birth[:]) // never fails
	d.serving.Go(func() {
		for {
			st, err := s.Accept(d.ctx)
			if err != nil {
				break
			}
			d.serving.Go(func() {
				defer d.options.Streams.Give(client.ID)
				d.options.Serve(d.ctx, client, st)
			})
		}
		<-s.Done()
		d.forget(h, attach.Session)
	})
	if d.options.Watch != nil {
		d.serving.Go(func() { d.options.Watch(Held{client, attach.Session, s}) })
	}
	return h, nil
}

// account returns the memory account of a client. All sessions of the client share it.
// The server must be locked.
func (d *Server) account(client identity.Client) *session.Account {
	for key, h := range d.sessions {
		if key.Client == client.ID {
			return h.session.Config().Account
		}
	}
	return d.options.Budget.Account(client.Name)
}

// places counts the streams of a client over all its sessions.
type places struct {
	server *Server
	client identity.Client
	remote net.Addr // of the session's first path
}

// Take implements session.Quota.
func (p places) Take() bool {
	o := &p.server.options
	if o.Streams.Take(p.client.ID, 0) {
		return true
	}
	o.Refused(p.client, p.remote, fmt.Errorf("the client's limit of %d streams is reached", o.Streams.Most))
	return false
}

// Give implements session.Quota.
func (p places) Give() { p.server.options.Streams.Give(p.client.ID) }

// forget removes a session that has ended.
func (d *Server) forget(h *held, id wire.SessionID) {
	d.mu.Lock()
	if key := h.client.Key(id); d.sessions[key] == h {
		delete(d.sessions, key)
	}
	d.mu.Unlock()
}

// ErrRemoved is the reason of sessions whose client was removed.
var ErrRemoved = errors.New("the client was removed, or has another secret or name")

// errReplaced is the reason of a session that ended to make room for a newer one.
var errReplaced = errors.New("a newer session of the client took its place")

// EndUnknown ends the sessions of all removed clients and waits until they have ended.
func (d *Server) EndUnknown() {
	d.mu.Lock()
	var ended []*session.Session
	for _, h := range d.sessions {
		if !d.options.Identity.Knows(h.client) {
			ended = append(ended, h.session)
		}
	}
	d.mu.Unlock()
	for _, s := range ended {
		s.End(ErrRemoved)
	}
	for _, s := range ended {
		_ = s.Close()
	}
}

// Close ends all sessions and waits until Serve and Watch have returned.
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
		s.End(errDraining)
	}
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

// Sessions returns all sessions, by client name and session number.
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
