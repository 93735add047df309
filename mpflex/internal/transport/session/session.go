package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"mplab/mpflex/internal/transport/sched"
)

// Errors with which a session ends.
var (
	ErrClosed   = errors.New("the session was closed")
	ErrNoPath   = errors.New("the session had no path for too long")
	ErrGoAway   = errors.New("the other side ended the session")
	ErrProtocol = errors.New("the other side broke the protocol")
	ErrStreams  = errors.New("the session has as many streams as it may")
)

// Session is the shared state of an agent and a proxy: streams, datagrams and paths.
// Its methods may be used by several goroutines.
type Session struct {
	config  Config
	peer    Peer // guarded by mu
	peerSet bool // SetPeer was called; guarded by mu
	role    Role
	begun   time.Time

	mu           sync.Mutex
	streams      map[uint32]*Stream
	nextID       uint32 // of the next stream that this side opens
	seen         idSet  // streams that the other side opened
	accepted     []*Stream
	acceptable   sync.Cond
	groups       []*group
	turn         int // index of the group that is served first
	defaultGroup *group
	control      controlQueue
	paths        []*Path       // attached paths
	settled      int64         // streams that have ended
	former       []*formerPath // ended paths whose path end has not arrived
	history      history       // of paths that are no longer attached
	lost         []entry       // messages to send again
	ends         []pathEnd     // path ends to send
	ended        []pathEnd     // path ends that were sent; they are repeated when they may have been lost
	unsent       int           // bytes of all streams that are not yet assigned to a path
	received     int           // received bytes of all streams that wait for their readers
	memory       atomic.Int64  // bytes charged to the account
	refusals     int64         // refused streams whose reset is not answered
	hungry       []*Stream     // streams that wait for memory to send
	relievedNS   int64         // time of the last attempt to free memory for them
	pathless     time.Time     // start of the time without a path; zero: a path exists
	copyBudget   float64       // bytes of tail copies that are still allowed
	err          error
	done         chan struct{}
	tick         chan struct{} // wakes watch
	looks        int           // how often watch has looked
	watching     sync.WaitGroup
	datagram     func(Datagram)
	datagramTurn int           // index of the group whose datagrams are served first
	datagramAge  time.Duration // the constant of that name; tests change it
	waiting      int64         // memory of datagrams that wait to be sent, in bytes
	totals       Counters
	scratch      []*Path
	views        []sched.Path // of scratch, for schedulers
	attached     bool         // a path was attached at least once
	events       []Event      // to deliver
	telling      sync.Cond

	datagramNumber uint32 // number of the next datagram that is copied
	datagramsSeen  numbers
}

// New starts a session without paths. Close ends it.
func New(role Role, c Config) (*Session, error) {
	c.complete()
	s := &Session{
		config: c, role: role, begun: time.Now(), streams: map[uint32]*Stream{}, nextID: 1, done: make(chan struct{}),
		tick: make(chan struct{}, 1), pathless: time.Now(), peer: Peer{c.InitialWindow, c.MaxStreams},
		datagramAge: datagramAge,
	}
	if role == Proxy {
		s.nextID = 2
	}
	scheduler, err := sched.New(c.Scheduler)
	if err != nil {
		return nil, err
	}
	s.defaultGroup = s.groupOf(&Scheme{Scheduler: scheduler})
	s.acceptable.L, s.telling.L = &s.mu, &s.mu
	c.Budget.enter(s)
	s.watching.Go(s.watch)
	if c.Log != nil {
		s.watching.Go(s.deliver)
	}
	return s, nil
}

// SetPeer sets the bounds of the other side. Call it before the first Attach: nothing
// is sent until then. Only the first call has an effect: the bounds of a session do not
// change.
func (s *Session) SetPeer(p Peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.peerSet {
		return
	}
	s.peer, s.peerSet = p, true
	for _, st := range s.streams {
		st.limit = uint64(p.InitialWindow)
	}
}

// Full reports whether Open fails with ErrStreams.
func (s *Session) Full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.full()
}

func (s *Session) full() bool {
	return len(s.streams) >= min(s.config.MaxStreams, s.peer.MaxStreams)
}

// Open returns a new stream. It sends nothing: the first bytes of the stream open it at
// the other side. It fails with the error of an ended session, ErrStreams or ErrMemory.
func (s *Session) Open() (*Stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return nil, s.err
	case s.full():
		return nil, ErrStreams
	case s.config.Account.pressure() >= short:
		s.config.Account.refuse()
		return nil, ErrMemory
	}
	st := s.newStream(s.nextID)
	s.nextID += 2
	return st, nil
}

// Accept waits for a stream that the other side opens. It fails when the session or ctx
// ends.
func (s *Session) Accept(ctx context.Context) (*Stream, error) {
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.acceptable.Broadcast()
	})
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.err != nil:
			return nil, s.err
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case len(s.accepted) > 0:
			st := s.accepted[0]
			s.accepted = s.accepted[1:]
			return st, nil
		}
		s.acceptable.Wait()
	}
}

// peerStream returns the stream of a frame. Any frame of a stream may arrive first: if
// the number is new, peerStream makes the stream. It returns nil for a stream that is
// over or refused.
func (s *Session) peerStream(id uint32) (*Stream, error) {
	if st := s.streams[id]; st != nil {
		return st, nil
	}
	own := id&1 == s.nextID&1
	switch {
	case id == 0:
		return nil, fmt.Errorf("%w: a frame of stream 0", ErrProtocol)
	case own && id >= s.nextID:
		return nil, fmt.Errorf("%w: a frame of stream %d, which was not opened", ErrProtocol, id)
	case own:
		return nil, nil
	}
	fresh, ok := s.seen.add(id >> 1)
	if !ok {
		return nil, fmt.Errorf("%w: stream %d is too far ahead of others", ErrProtocol, id)
	}
	if !fresh {
		return nil, nil
	}
	if len(s.streams) > s.config.MaxStreams+mostRefused {
		return nil, fmt.Errorf("%w: too many streams are opened", ErrProtocol)
	}
	st := s.newStream(id)
	switch quota := s.config.Incoming; {
	case s.config.Account.pressure() >= short:
		s.refuse(st, NoMemory)
		return nil, nil
	case len(s.streams) > s.config.MaxStreams, quota != nil && !quota.Take():
		s.refuse(st, TooMany)
		return nil, nil
	}
	s.accepted = append(s.accepted, st)
	s.acceptable.Signal()
	return st, nil
}

// wake signals all idle paths that there may be something to send, and wakes watch.
func (s *Session) wake() {
	for _, p := range s.paths {
		if p.idle {
			p.work.Signal()
		}
	}
	s.watchOver()
}

// watchOver makes watch look at the session soon.
func (s *Session) watchOver() {
	select {
	case s.tick <- struct{}{}:
	default:
	}
}

// Close ends the session: it resets all streams and closes the paths. Before it
// returns, all events are delivered and all goroutines have ended. It takes up to 0.5 s
// (goAwayTimeout + farewellTime) if the other side is silent.
func (s *Session) Close() error {
	s.End(ErrClosed)
	s.watching.Wait()
	return nil
}

// End starts to end the session as Close does. Its streams and its log get why as the
// error. The caller must still call Close.
func (s *Session) End(why error) { s.end(why, true) }

// Done is closed when the session has ended. Err then returns the reason.
func (s *Session) Done() <-chan struct{} { return s.done }

// Err returns why the session ended, or nil while it is open.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// end ends the session. Only the reason of the first call counts. With tell, it sends
// go away on each path that can be written to in goAwayTimeout.
func (s *Session) end(why error, tell bool) {
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return
	}
	s.err = why
	lost := 0
	for _, st := range s.streams {
		if st.reset == nil && !st.done() {
			lost++
		}
		st.over(&ResetError{SessionOver, why})
		s.forget(st)
	}
	if s.attached || lost > 0 {
		s.tell(Event{Time: time.Now(), What: Over, Err: why, Streams: lost})
	}
	if s.config.Incoming != nil {
		for range s.accepted { // their places: no one accepts them any more
			s.config.Incoming.Give()
		}
	}
	s.accepted, s.hungry = nil, nil
	s.config.Budget.leave(s)
	paths := s.paths
	s.paths = nil
	s.dropDatagrams()
	for _, p := range paths {
		p.state, p.goAway = gone, tell
		s.dropCopies(p)
		s.history.ends(p)
		now := time.Now()
		_ = p.link.TCP.SetWriteDeadline(now.Add(goAwayTimeout))
		_ = p.link.TCP.SetReadDeadline(now.Add(goAwayTimeout + farewellTime))
		p.work.Broadcast()
	}
	s.acceptable.Broadcast()
	s.telling.Broadcast()
	close(s.done)
	s.mu.Unlock()
}

const (
	// goAwayTimeout bounds the writing of the last frame.
	goAwayTimeout = 200 * time.Millisecond
	// farewellTime bounds how long a path is read after that.
	farewellTime = 300 * time.Millisecond
)

// nowNS returns the time since the session started, in nanoseconds.
func (s *Session) nowNS() int64 { return int64(time.Since(s.begun)) }

// idSet is a set of stream numbers. Nearly all of them arrive in order.
type idSet struct {
	below uint32 // all numbers below are in the set
	above map[uint32]bool
}

// mostAhead bounds how far a number may be ahead of the lowest missing one.
const mostAhead = 1 << 15

// mostRefused bounds the refused streams whose reset is not answered.
const mostRefused = 1 << 14

// add adds a number. fresh: it was not in the set. ok: it is not too far ahead.
func (s *idSet) add(id uint32) (fresh, ok bool) {
	switch {
	case id < s.below || s.above[id]:
		return false, true
	case id >= s.below+mostAhead:
		return false, false
	}
	if id > s.below {
		if s.above == nil {
			s.above = map[uint32]bool{}
		}
		s.above[id] = true
		return true, true
	}
	for s.below++; s.above[s.below]; s.below++ {
		delete(s.above, s.below)
	}
	return true, true
}

// sendable returns how many bytes of a stream may be assigned to a path now.
func (st *Stream) sendable() uint64 {
	if st.limit <= st.next {
		return 0
	}
	return min(st.out.end, st.limit) - st.next
}

// eager reports whether a stream has a message to send.
func (st *Stream) eager() bool {
	return st.reset == nil && (st.sendable() > 0 || st.finished && !st.finSent && st.next == st.out.end)
}

// controlQueue holds the streams that have control frames to send.
type controlQueue struct{ list []*Stream }

func (q *controlQueue) push(st *Stream) { q.list = append(q.list, st) }

// Config returns the settings, defaults included.
func (s *Session) Config() Config { return s.config }
