package uplink

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"mplab/internal/netx"
	"mplab/mpflex/internal/transport/identity"
	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/wire"
)

const (
	// attachTimeout bounds the time to set up a path.
	attachTimeout = 10 * time.Second
	// firstPause and lastPause bound the pause between two attempts.
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
	// lastingTime is how long a path must exist so that its end does not count as a
	// failed attempt.
	lastingTime = time.Second
	// stallPatience is how long a stalled path may recover before a second connection
	// is tried in parallel.
	stallPatience = time.Second
)

// Path is an interface that carries a session.
type Path struct {
	Device string // interface that the path is bound to; "": the routes decide
	Backup bool   // use only while no other path can be used
}

// Options of an [Uplink].
type Options struct {
	Proxy   netip.AddrPort
	Secret  []byte
	Private *identity.Agent // encrypts the paths; nil: they are plain
	Socket  netx.Options    // of the paths; Device is set for each path
	Paths   []Path
	Session session.Config
	Schemes func() []byte // returns the encoded table of schemes for the proxy; nil: no schemes
	Log     func(Event)   // nil: no log; see session.Config.Log
	// Datagram takes the datagrams of all sessions, see session.OnDatagram. nil: they
	// are dropped.
	Datagram func(session.Datagram)
}

// Events of an uplink in addition to those of a session.
const (
	Failed    = "failed"    // a path could not be set up
	Unwatched = "unwatched" // changes of interfaces are noticed late or not at all; the first event
)

// Event is an event of a path or a session. Failures of the same kind are reported once
// until the path is attached, and again after remindAfter.
type Event struct {
	session.Event
	Session wire.SessionID
}

// Uplink is an agent's side of its sessions. New makes it.
type Uplink struct {
	options Options
	watcher func(wire.SessionID, *session.Session) // nil: none

	devices *devices
	clock   wire.Clock

	mu       sync.Mutex // guards the fields below
	current  *run
	failures []failures // of each path, across sessions
}

// run is a session with its paths.
type run struct {
	session *session.Session
	id      wire.SessionID
	known   bool // the proxy knows the session; guarded by the uplink's lock, like birth
	birth   [wire.BirthSize]byte
	numbers []uint32
	news    []chan session.Event

	failures   []error // of the last attempt of each path; guarded by the uplink's lock, like suppressed
	suppressed []int   // suppressed failures of each path before its attach
}

// New returns an uplink with a session. Its paths are set up by Run. It fails for a
// wrong number of paths or a wrong scheduler.
func New(o Options) (*Uplink, error) {
	if len(o.Paths) == 0 || len(o.Paths) > wire.MaxPaths {
		return nil, fmt.Errorf("%d paths; between 1 and %d are needed", len(o.Paths), wire.MaxPaths)
	}
	if o.Log == nil {
		o.Log = func(Event) {}
	}
	u := &Uplink{options: o, devices: newDevices(o.Proxy.Addr(), o.Paths), failures: make([]failures, len(o.Paths))}
	r, err := u.begin()
	u.current = r
	return u, err
}

// begin makes a session.
func (u *Uplink) begin() (*run, error) {
	n := len(u.options.Paths)
	r := &run{numbers: make([]uint32, n), failures: make([]error, n), suppressed: make([]int, n)}
	_, _ = rand.Read(r.id[:]) // never fails
	for range u.options.Paths {
		r.news = append(r.news, make(chan session.Event, 1))
	}
	config := u.options.Session
	config.Log = func(e session.Event) {
		if e.What == session.Attached {
			u.mu.Lock()
			e.Suppressed = r.suppressed[e.Path]
			u.mu.Unlock()
		}
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

// Run keeps the paths until ctx ends. Then it closes the session.
func (u *Uplink) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	wait, err := u.devices.watch(ctx)
	defer wait()
	defer cancel()
	if err != nil {
		u.options.Log(Event{session.Event{Time: time.Now(), What: Unwatched, Err: err}, u.ID()})
	}
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
			return // cannot happen: the first session had the same settings
		}
		u.mu.Lock()
		u.current = next
		u.mu.Unlock()
	}
}

func (u *Uplink) now() *run {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.current
}

// Open opens a stream of the session. If there is no path, the stream waits for one.
func (u *Uplink) Open() (*session.Stream, error) { return u.now().session.Open() }

// Session returns the current session. A new one replaces it when it has ended.
func (u *Uplink) Session() *session.Session { return u.now().session }

// ID returns the number of the current session.
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

// keep keeps one path: it attaches it, waits for its end, and tries again.
func (u *Uplink) keep(ctx context.Context, r *run, i int) {
	var held *lease // of the attached path, also while a second connection is tried
	defer func() { held.done() }()
	var path *session.Path // the attached path
	var attached time.Time
	for pause := firstPause; ctx.Err() == nil; {
		use, unfit := u.devices.use(ctx, u.options.Paths[i].Device)
		if unfit != nil {
			u.failed(r, i, unfit)
			await(ctx, use.changed)
			use.release()
			pause = firstPause
			continue
		}
		next, err := u.attach(use, r, i, path)
		switch u.note(r, i, err); {
		case errors.Is(err, errRecovered):
			use.release()
			use = held
		case err != nil:
			if errors.Is(err, errUnknown) {
				r.session.End(errUnknown) // keepAll sees it
				use.release()
				return
			}
			pause = u.tryLater(ctx, use, r, i, err, pause)
			continue
		default:
			held.done()
			held, path, attached = use, next, time.Now()
			u.bind(use, i, path)
		}
		u.hold(ctx, r, i, path)
		if !ended(path) {
			continue // it is stalled
		}
		held.done()
		held, path = nil, nil
		if lost(use) || time.Since(attached) >= lastingTime {
			pause = firstPause
			continue
		}
		rest(ctx, pause, use.changed)
		pause = min(2*pause, lastPause)
	}
}

func ended(path *session.Path) bool {
	select {
	case <-path.Done():
		return true
	default:
		return false
	}
}

// tryLater reports a failure and pauses, at most until the device changes. It returns
// the next pause.
func (u *Uplink) tryLater(ctx context.Context, use *lease, r *run, i int, err error, pause time.Duration) time.Duration {
	defer use.release()
	switch {
	case ctx.Err() != nil:
		return pause
	case lost(use):
		return firstPause // the next use checks the device again
	}
	u.failed(r, i, err)
	if rest(ctx, pause, use.changed) {
		return firstPause
	}
	return min(2*pause, lastPause)
}

// bind ends a path when its device can no longer carry it.
func (u *Uplink) bind(use *lease, i int, path *session.Path) {
	if addr, ok := path.LocalAddr().(*net.TCPAddr); ok {
		use.bound(addr.AddrPort().Addr())
	}
	use.stop = context.AfterFunc(use, func() {
		if !lost(use) {
			return
		}
		why := context.Cause(use)
		u.mu.Lock()
		u.failures[i].known(why, time.Now()) // the path's end reports it
		u.mu.Unlock()
		path.Abandon(why)
	})
}

// failed reports a path that could not be set up, unless the failure is suppressed.
func (u *Uplink) failed(r *run, i int, err error) {
	now := time.Now()
	u.mu.Lock()
	r.failures[i] = err
	suppressed, tell := u.failures[i].failed(err, now)
	u.mu.Unlock()
	if tell {
		r.session.Report(session.Event{
			Time: now, What: Failed, Path: uint8(i), Name: u.options.Paths[i].Device, Incarnation: r.numbers[i], Err: err, Suppressed: suppressed,
		})
	}
}

// hold waits until a path has ended, or has been stalled for stallPatience.
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

func await(ctx context.Context, changed <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-changed:
	}
}

// rest waits for d. It returns true if a change of the device ended it early.
func rest(ctx context.Context, d time.Duration, changed <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-changed:
		return true
	case <-ctx.Done():
	case <-timer.C:
	}
	return false
}
