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
	// attachTimeout bounds how long setting up a path may take.
	attachTimeout = 10 * time.Second
	// firstPause and lastPause bound the rest between two tries.
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
	// lastingTime is how long a path must have lived so that its end is no failure
	// to set it up.
	lastingTime = time.Second
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
	Log     func(Event)   // nil: nobody; see session.Config.Log
	// Datagram takes the datagrams of all sessions, see session.OnDatagram; nil: nobody.
	Datagram func(session.Datagram)
}

// What an event of an uplink may be beside those of a session.
const (
	Failed    = "failed"    // a path could not be set up
	Unwatched = "unwatched" // changes of interfaces are not noticed at once; it comes before all others
)

// Event is what happens to paths and sessions. Failures of the same kind are
// told once until the path is there.
type Event struct {
	session.Event
	Session wire.SessionID
}

// Uplink is an agent's side of its sessions. Make it with New.
type Uplink struct {
	options Options
	watcher func(wire.SessionID, *session.Session) // nil: nobody

	devices *devices
	clock   wire.Clock

	mu       sync.Mutex // guards what follows
	current  *run
	failures []failures // of each path, over all sessions
}

// run is one session with its paths.
type run struct {
	session *session.Session
	id      wire.SessionID
	known   bool // by the proxy; guarded by the uplink's lock, like birth
	birth   [wire.BirthSize]byte
	numbers []uint32
	news    []chan session.Event

	failures   []error // of the last try of each path; guarded by the uplink's lock, like the next
	suppressed []int   // failures of each path before it was attached that were not told
}

// New returns an uplink whose session waits for Run.
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

// Run keeps the paths until ctx ends, and closes the session then.
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
			return // the same settings were good before
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
	var held *lease // of the path that is attached, also while another connection is tried
	defer func() { held.done() }()
	var path *session.Path // that is attached
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

// tryLater rests after a failure, until the device has changed at most, and
// returns how long to rest after the next.
func (u *Uplink) tryLater(ctx context.Context, use *lease, r *run, i int, err error, pause time.Duration) time.Duration {
	defer use.release()
	switch {
	case ctx.Err() != nil:
		return pause
	case lost(use):
		return firstPause // the next use says what there is now
	}
	u.failed(r, i, err)
	if rest(ctx, pause, use.changed) {
		return firstPause
	}
	return min(2*pause, lastPause)
}

// bind ends a path when its device cannot carry it any more.
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
		u.failures[i].known(why, time.Now()) // the end of the path tells it
		u.mu.Unlock()
		path.Abandon(why)
	})
}

// failed tells of a path that could not be set up, if it is news.
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

func await(ctx context.Context, changed <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-changed:
	}
}

// rest waits for some time, and tells whether it ended early by a change.
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
