package udprelay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"mplab/internal/jsonlog"
	"mplab/internal/netx"
	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/transport/identity"
)

// The reasons why a datagram is not sent. All are counted.
var (
	// ErrDenied reports a destination that is not in the allow list, or can never be
	// one: multicast, no address, port 0.
	ErrDenied = errors.New("the destination is not allowed")
	// ErrLimit reports that a new socket would exceed a limit.
	ErrLimit = errors.New("the limit of UDP sockets is reached")
	// ErrClosed reports that the relay was closed.
	ErrClosed = errors.New("the relay is closed")
)

// Client is a session of a client, with the client's name for the log.
type Client struct {
	identity.SessionKey
	Name string
}

// Limits bounds the resources of clients. A zero field selects the default.
type Limits struct {
	Sockets          int           // of all clients; default 4096
	SocketsPerClient int           // of all its sessions; default 512
	Destinations     int           // per association; a further one replaces the longest silent one; default 256
	Idle             time.Duration // time without a datagram in either direction; default 300 s (RFC 4787 REQ-5)
}

func (l Limits) withDefaults() Limits {
	l.Sockets = cmp.Or(l.Sockets, 4096)
	l.SocketsPerClient = cmp.Or(l.SocketsPerClient, 512)
	l.Destinations = cmp.Or(l.Destinations, 256)
	l.Idle = cmp.Or(l.Idle, 300*time.Second)
	return l
}

// Options are the settings of a relay.
type Options struct {
	Permits func(netip.AddrPort) bool // reports whether datagrams may go to a destination; nil: to none
	Limits  Limits
	Socket  netx.Options // options of the sockets; only the mark is used
	Log     *jsonlog.Log // of associations and failures; may be nil
	// Deliver takes an answer for an association. datagram is valid until Deliver
	// returns. label is that of the last datagram sent to source. Each association
	// calls Deliver in its own goroutine. Deliver must not block for long: further
	// datagrams of the association are lost during that time. It must not call Close.
	Deliver func(client Client, association uint32, source netip.AddrPort, label byte, datagram []byte)
}

// Relay is a table of associations. It is safe for concurrent use.
type Relay struct {
	Counters Counters

	options Options
	notices jsonlog.Throttle

	mu           sync.Mutex // guards the fields below
	closed       bool
	associations map[key]*association
	perClient    map[identity.ID]int
	readers      sync.WaitGroup
}

// key identifies an association.
type key struct {
	client Client
	id     uint32
}

// New returns a relay without associations.
func New(o Options) *Relay {
	o.Limits = o.Limits.withDefaults()
	return &Relay{
		options:      o,
		associations: make(map[key]*association),
		perClient:    make(map[identity.ID]int),
	}
}

// Send sends a datagram of a client's association. The first datagram starts the
// association. Send does not block. A datagram that is not sent is counted, and the
// error is ErrDenied, ErrLimit, ErrClosed, netx.ErrWouldWait, or that of the socket.
// Answers get the label.
func (r *Relay) Send(client Client, association uint32, destination netip.AddrPort, label byte, datagram []byte) error {
	destination = netip.AddrPortFrom(destination.Addr().Unmap().WithZone(""), destination.Port())
	k := key{client, association}
	if !r.permits(destination) {
		r.Counters.Denied.Add(1)
		r.note(k, destination, ErrDenied)
		return ErrDenied
	}
	a, err := r.find(k)
	if err != nil {
		if errors.Is(err, ErrLimit) {
			r.Counters.OverLimit.Add(1)
		} else {
			r.Counters.Failed.Add(1)
		}
		r.note(k, destination, err)
		return err
	}
	return a.send(destination, label, datagram)
}

func (r *Relay) permits(destination netip.AddrPort) bool {
	ip := destination.Addr()
	return destination.Port() != 0 && ip.IsValid() && !ip.IsUnspecified() && !ip.IsMulticast() &&
		r.options.Permits != nil && r.options.Permits(destination)
}

// find returns an association, and starts it if it does not exist.
func (r *Relay) find(k key) (*association, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.associations[k]; a != nil {
		a.activity.Touch() // so that it does not expire before the datagram is sent
		return a, nil
	}
	limits := r.options.Limits
	switch {
	case r.closed:
		return nil, ErrClosed
	case len(r.associations) >= limits.Sockets:
		return nil, fmt.Errorf("%w: %d", ErrLimit, limits.Sockets)
	case r.perClient[k.client.Client] >= limits.SocketsPerClient:
		return nil, fmt.Errorf("%w: %d of one client", ErrLimit, limits.SocketsPerClient)
	}
	a, err := r.open(k)
	if err != nil {
		return nil, err
	}
	r.associations[k] = a
	r.perClient[k.client.Client]++
	r.readers.Go(a.run)
	return a, nil
}

func (r *Relay) open(k key) (*association, error) {
	a := &association{
		relay: r, key: k, opened: time.Now(),
		destinations: make(map[netip.AddrPort]*peer),
	}
	var err error
	a.socket, err = r.options.Socket.OpenDatagrams(context.Background(), a.unreachable)
	if err != nil {
		return nil, err
	}
	a.activity.Touch()
	_ = a.socket.SetReadDeadline(time.Now().Add(r.options.Limits.Idle)) // fails only when closed
	return a, nil
}

// remove removes an association from the table and reports whether it was there.
func (r *Relay) remove(a *association) bool {
	if r.associations[a.key] != a {
		return false
	}
	delete(r.associations, a.key)
	if owner := a.key.client.Client; r.perClient[owner] == 1 {
		delete(r.perClient, owner)
	} else {
		r.perClient[owner]--
	}
	return true
}

// expire ends an association that was idle for too long. It returns the remaining idle
// time, which is not positive if the association has ended.
func (r *Relay) expire(a *association) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := a.activity.Left(r.options.Limits.Idle)
	if left <= 0 && r.remove(a) {
		a.close(connlog.Timeout)
	}
	return left
}

// CloseAssociation ends an association, if it exists.
func (r *Relay) CloseAssociation(client Client, association uint32) {
	r.end(connlog.Closed, func(k key) bool { return k == key{client, association} })
}

// CloseClient ends all associations of a client's session.
func (r *Relay) CloseClient(client Client) {
	r.end(connlog.Closed, func(k key) bool { return k.client == client })
}

// Close ends all associations and waits for their goroutines. Further datagrams are not
// sent.
func (r *Relay) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.end(connlog.Shutdown, func(key) bool { return true })
	r.readers.Wait()
}

// end ends the chosen associations.
func (r *Relay) end(status connlog.Status, chosen func(key) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, a := range r.associations {
		if chosen(k) && r.remove(a) {
			a.close(status)
		}
	}
}

// Associations returns the number of open associations, which is that of sockets.
func (r *Relay) Associations() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.associations)
}
