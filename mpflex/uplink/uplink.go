// Package uplink keeps an agent's session with its proxy: a path for each
// interface, set up again whenever it has ended, and another session when the
// proxy does not know this one any more.
package uplink

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"mplab/mpflex/identity"
	"mplab/mpflex/netx"
	"mplab/mpflex/session"
	"mplab/mpflex/wire"
)

const (
	// attachTimeout bounds how long setting up a path may take.
	attachTimeout = 10 * time.Second
	// firstPause and lastPause bound the rest between two tries.
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
	// stallPatience is how long a stalled path may recover before another
	// connection is tried beside it.
	stallPatience = time.Second
)

// Path is an interface that carries a session.
type Path struct {
	Device string // bound to it; "": the routes decide
	Backup bool   // used only when no other path can be
}

// Options of an [Uplink].
type Options struct {
	Proxy   netip.AddrPort
	Secret  []byte
	Private *identity.Agent // makes paths private; nil: they are plain
	Socket  netx.Options    // of the paths; the device is that of each path
	Paths   []Path
	Session session.Config
	Schemes func() []byte // that labels of streams stand for, for the proxy; nil: none
	Log     func(Event)   // nil: nobody
	// Datagram takes the datagrams of all sessions, see session.OnDatagram; nil: nobody.
	Datagram func(association uint32, payload []byte)
}

// Event is what happens to paths and sessions.
type Event struct {
	session.Event
	Session wire.SessionID
}

// Uplink is an agent's side of its sessions. Make it with New.
type Uplink struct {
	options Options
	watcher func(wire.SessionID, *session.Session) // nil: nobody

	mu      sync.Mutex
	current *run
	changed chan struct{} // closed, and another one made, when current changes
}

// run is one session with its paths.
type run struct {
	session *session.Session
	id      wire.SessionID
	known   bool // by the proxy; guarded by the uplink's lock, like birth
	birth   [wire.BirthSize]byte
	numbers []uint32
	news    []chan session.Event

	failures []error // of the last try of each path; guarded by the uplink's lock
}

// New returns an uplink whose session waits for Run.
func New(o Options) (*Uplink, error) {
	if len(o.Paths) == 0 || len(o.Paths) > 64 {
		return nil, fmt.Errorf("%d paths; between 1 and 64 are needed", len(o.Paths))
	}
	if o.Log == nil {
		o.Log = func(Event) {}
	}
	u := &Uplink{options: o, changed: make(chan struct{})}
	r, err := u.begin()
	u.current = r
	return u, err
}

// begin makes a session.
func (u *Uplink) begin() (*run, error) {
	r := &run{numbers: make([]uint32, len(u.options.Paths)), failures: make([]error, len(u.options.Paths))}
	_, _ = rand.Read(r.id[:]) // never fails
	for range u.options.Paths {
		r.news = append(r.news, make(chan session.Event, 1))
	}
	config := u.options.Session
	config.Log = func(e session.Event) {
		u.options.Log(Event{e, r.id})
		select {
		case r.news[e.Path] <- e:
		default:
		}
	}
	var err error
	if r.session, err = session.New(session.Agent, config); err == nil && u.options.Datagram != nil {
		r.session.OnDatagram(u.options.Datagram)
	}
	return r, err
}

// Run keeps the paths until ctx ends, and closes the session then.
func (u *Uplink) Run(ctx context.Context) {
	for ctx.Err() == nil {
		r := u.now()
		watched := u.watch(r)
		u.keepAll(ctx, r)
		_ = r.session.Close()
		watched()
		if ctx.Err() != nil {
			return
		}
		next, err := u.begin()
		if err != nil {
			return // the same settings were good before
		}
		u.mu.Lock()
		u.current = next
		close(u.changed)
		u.changed = make(chan struct{})
		u.mu.Unlock()
	}
}

func (u *Uplink) now() *run {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.current
}

// Open opens a stream of the session. Without a path it waits for one.
func (u *Uplink) Open() (*session.Stream, error) { return u.now().session.Open() }

// Session is the session now; another one takes its place when it has ended.
func (u *Uplink) Session() *session.Session { return u.now().session }

// ID is the number of the session now.
func (u *Uplink) ID() wire.SessionID { return u.now().id }

// keepAll keeps the paths of a session until it has ended.
func (u *Uplink) keepAll(ctx context.Context, r *run) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	for i := range u.options.Paths {
		all.Go(func() { u.keep(ctx, r, i) })
	}
	select {
	case <-ctx.Done():
	case <-r.session.Done():
	}
	cancel()
	all.Wait()
}

// keep keeps one path.
func (u *Uplink) keep(ctx context.Context, r *run, i int) {
	pause := firstPause
	for ctx.Err() == nil {
		path, err := u.attach(ctx, r, i)
		u.note(r, i, err)
		switch {
		case errors.Is(err, errUnknown):
			go r.session.Close() //nolint:errcheck // keepAll sees the end
			return
		case err != nil:
			u.failed(r, i, err)
			rest(ctx, pause)
			pause = min(2*pause, lastPause)
			continue
		}
		pause = firstPause
		u.hold(ctx, r, i, path)
	}
}

// failed tells of a path that could not be set up.
func (u *Uplink) failed(r *run, i int, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	u.options.Log(Event{session.Event{
		Time: time.Now(), What: "failed", Path: uint8(i), Name: u.options.Paths[i].Device, Incarnation: r.numbers[i], Err: err,
	}, r.id})
}

// hold waits until a path has ended, or has been stalled for so long that it
// is worth while to set up another connection beside it.
func (u *Uplink) hold(ctx context.Context, r *run, i int, path *session.Path) {
	var patience <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-path.Done():
			return
		case <-r.news[i]:
			if patience == nil && path.Stalled() {
				patience = time.After(stallPatience)
			}
		case <-patience:
			patience = nil
			if path.Stalled() {
				return
			}
		}
	}
}

func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
