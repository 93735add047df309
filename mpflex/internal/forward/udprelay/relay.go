package udprelay

import (
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

// Reasons for which a datagram is not sent. All are counted.
var (
	// ErrDenied: the destination is not in the allow list, or none that
	// datagrams are ever relayed to: multicast, no address, port 0.
	ErrDenied = errors.New("the destination is not allowed")
	// ErrLimit: a socket is needed and no more may be opened.
	ErrLimit = errors.New("the limit of UDP sockets is reached")
	// ErrClosed: the relay was closed.
	ErrClosed = errors.New("the relay is closed")
)

// Client is a session of a client, and how the log calls the client.
type Client struct {
	identity.SessionKey
	Name string
}

// Limits bound what clients can use. A zero field is its default.
type Limits struct {
	Sockets          int           // of all clients; default 4096
	SocketsPerClient int           // of all its sessions; default 512
	Destinations     int           // of an association that answers are taken from; further ones replace the one not heard of for longest; default 256
	Idle             time.Duration // without a datagram in either direction; default 300 s (RFC 4787 REQ-5)
}

func (l Limits) withDefaults() Limits {
	setDefault(&l.Sockets, 4096)
	setDefault(&l.SocketsPerClient, 512)
	setDefault(&l.Destinations, 256)
	setDefault(&l.Idle, 300*time.Second)
	return l
}

func setDefault[T int | time.Duration](value *T, otherwise T) {
	if *value == 0 {
		*value = otherwise
	}
}

// Options are what a relay is made of.
type Options struct {
	Permits func(netip.AddrPort) bool // where datagrams may go; nil: nowhere
	Limits  Limits
	Socket  netx.Options // of the sockets; only the mark counts
	Log     *jsonlog.Log // of associations and of what went wrong; may be nil
	// Deliver takes a datagram that came back for an association. It is
	// good until Deliver returns. Deliver is called by a goroutine of each
	// association and must not wait for long: meanwhile further datagrams
	// of the association are lost. It must not call Close. The label is that
	// of the last datagram which was sent to the source.
	Deliver func(client Client, association uint32, source netip.AddrPort, label byte, datagram []byte)
}

// Relay is a table of associations. It is safe for concurrent use.
type Relay struct {
	Counters Counters

	options Options
	notices jsonlog.Throttle

	mu           sync.Mutex // guards what follows
	closed       bool
	associations map[key]*association
	perClient    map[identity.ID]int
	readers      sync.WaitGroup
}

// key names an association.
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

// Send sends a datagram of a client's association, which begins with its first
// datagram. It never waits. Whatever is not sent is counted; the error says why:
// ErrDenied, ErrLimit, ErrClosed, netx.ErrWouldWait, or that of the socket.
// The label comes back with the answers.
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

// find returns an association, and begins it when it is not there.
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

// remove takes an association out of the table and tells whether it was there.
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

// expire ends an association that was idle for too long. It returns how long it
// may still be idle, not positive when it has ended.
func (r *Relay) expire(a *association) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := a.activity.Left(r.options.Limits.Idle)
	if left <= 0 && r.remove(a) {
		a.close(connlog.Timeout)
	}
	return left
}

// CloseAssociation ends an association; one that is not there is no error.
func (r *Relay) CloseAssociation(client Client, association uint32) {
	r.end(connlog.Closed, func(k key) bool { return k == key{client, association} })
}

// CloseClient ends all associations of a session of a client.
func (r *Relay) CloseClient(client Client) {
	r.end(connlog.Closed, func(k key) bool { return k.client == client })
}

// Close ends all associations and waits until nothing of them is left. Further
// datagrams are not sent.
func (r *Relay) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.end(connlog.Shutdown, func(key) bool { return true })
	r.readers.Wait()
}

// end ends the associations chosen.
func (r *Relay) end(status connlog.Status, chosen func(key) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, a := range r.associations {
		if chosen(k) && r.remove(a) {
			a.close(status)
		}
	}
}

// Associations returns how many associations, and so sockets, are open.
func (r *Relay) Associations() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.associations)
}
