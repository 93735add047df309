package session

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ErrMemory reports that the memory for sessions is used up. Open fails with it. A
// session ends with it when it would have to remember too many refused streams.
var ErrMemory = errors.New("the memory for sessions is used up")

// Budget bounds the memory of all sessions that use it: received bytes that wait for
// readers, sent bytes that are not acknowledged, datagrams that wait to be sent, and a
// fixed cost of each open stream. The memory of a path (buffers, TLS, up to
// [mostControl] bytes of answers) is not included.
//
// Each client has an [Account]. An account may use at most half of the memory that the
// other accounts leave, so a client cannot shut out another one. Each account applies
// these watermarks to its share:
//
//   - 1/4: streams keep few unsent bytes; from 1/2 on, all streams keep fewer bytes.
//   - 3/4: windows are small, and a stream keeps one block.
//   - 7/8: new streams are refused.
//   - Full: the session slows down. It reads no more from applications, and takes
//     received bytes only as fast as readers free memory.
//   - Only when full, a stream is reset with [NoMemory], and only if it made no
//     progress for [standstill], or for [deadlock] while nothing else progresses.
//
// The other side may send the initial window of each stream without an acknowledgement.
// Windows beyond that are promises. Their sum is at most a quarter of the share.
type Budget struct {
	limit  int64
	report func(Shortage)
	// How long a stream must make no progress before it may be reset.
	standstill, deadlock time.Duration

	used     atomic.Int64 // bytes
	promised atomic.Int64 // bytes of windows beyond the initial ones
	refused  atomic.Int64 // streams
	reset    atomic.Int64

	relieving atomic.Bool

	mu       sync.Mutex
	sessions map[*Session]bool
}

// Account counts the memory of the sessions of one client.
type Account struct {
	budget *Budget
	client string
	parts  int64 // the share is 1/parts of the memory that other accounts leave

	used     atomic.Int64 // bytes, with those of in and out
	in, out  atomic.Int64 // bytes of buffers: received; sent and not acknowledged
	promised atomic.Int64
	freed    atomic.Int64  // sum of all bytes released
	reported atomic.Int64  // time of the last report, unix nanoseconds
	gate     chan struct{} // held by the path that waits in slow
}

// Shortage reports that a client's share is nearly used up, so sessions slow down or
// refuse streams. Refused and Reset count since the budget was made.
type Shortage struct {
	Client         string // empty at the agent
	Own, Share     int64  // bytes that the client uses; bytes that it may use now
	Used, Limit    int64  // bytes of the whole budget
	Refused, Reset int64  // streams
}

const (
	// shortageEvery is the minimum time between two reports about a client.
	shortageEvery = 10 * time.Second
	// streamCost is the memory of an open stream without payload: the stream and the
	// code that serves it at the agent or the proxy (measured: docs/mpflex.md).
	streamCost = 20 << 10
	// overCost is the memory of a reset stream until the other side has answered.
	overCost = 1 << 10
	// pieceCost is the memory of a received message without its payload.
	pieceCost = 64
	// growth is how many bytes a window grows for each byte that the reader takes. It
	// is large enough that a stream is not limited if it did not fill its initial
	// window in a round trip. Streams of a few bytes hold no promise.
	growth = 8
	// shareOfFree: 1/shareOfFree of the remaining promises is available to one stream.
	shareOfFree = 4
	// shareOfRoom: one stream may keep 1/shareOfRoom of the memory below a watermark
	// unacknowledged, and has a window of that size while memory is scarce. leastKept
	// and leastWindow are the minima.
	shareOfRoom = 16
	leastKept   = 64 << 10
	leastWindow = 32 << 10
	// shareOfWaiting: 1/shareOfWaiting of the memory below a watermark may wait unsent in one stream.
	shareOfWaiting = 128
	// leastData is the minimum buffer memory of all streams of an account. With it they
	// make progress even if other clients have made the account's share smaller.
	leastData = 512 << 10
	// standstill is how long a stream makes no progress before it is reset to free
	// memory. Pauses of slow readers and outages of a path are shorter.
	standstill = 30 * time.Second
	// deadlock is the same while all readers of the account make no progress.
	deadlock = 5 * time.Second
	// slowTick is how often a path that waits for memory checks again, slowIdle the
	// maximum wait while no memory is freed, slowMost the maximum in total. Then the
	// path takes one frame: acknowledgements, which free memory, may follow it.
	slowTick = time.Millisecond
	slowIdle = 100 * time.Millisecond
	slowMost = time.Second
	// relieveEvery is the minimum time between two attempts to free memory for streams
	// that wait to send.
	relieveEvery = time.Second
)

// NewBudget returns a budget of limit bytes. It calls report, if not nil, at most once
// in 10 s for each client that is short of memory. report must not block.
func NewBudget(limit int64, report func(Shortage)) *Budget {
	if report == nil {
		report = func(Shortage) {}
	}
	return &Budget{limit: limit, report: report, standstill: standstill, deadlock: deadlock, sessions: map[*Session]bool{}}
}

// Account returns a new account for one of several clients. Its sessions may use half
// of the memory that other accounts leave.
func (b *Budget) Account(client string) *Account { return b.account(client, 2) }

func (b *Budget) account(client string, parts int64) *Account {
	return &Account{budget: b, client: client, parts: parts, gate: make(chan struct{}, 1)}
}

// Used returns the bytes of the budget that are in use.
func (b *Budget) Used() int64 { return b.used.Load() }

// share returns how many bytes the account may use now.
func (a *Account) share() int64 {
	return (a.budget.limit - a.budget.used.Load() + a.used.Load()) / a.parts
}

// data returns how many bytes of the share are for buffers: all except the fixed costs
// of streams.
func (a *Account) data() int64 {
	return max(a.share()-a.used.Load()+a.in.Load()+a.out.Load(), leastData)
}

// roomIn and roomOut return how many bytes may be added to the buffers of each
// direction. At least a quarter is reserved for the other direction.
func (a *Account) roomIn() int64 {
	data := a.data()
	return data - a.in.Load() - max(a.out.Load(), data/4)
}

func (a *Account) roomOut() int64 {
	data := a.data()
	return data - a.out.Load() - max(a.in.Load(), data/4)
}

// pressure is the level of memory use.
type pressure uint8

const (
	plenty pressure = iota
	scarce          // 3/4 of the share is used
	short           // 7/8 of the share is used
)

func (a *Account) pressure() pressure {
	switch used, share := a.used.Load(), a.share(); {
	case used < share/4*3:
		return plenty
	case used < share/8*7:
		return scarce
	}
	return short
}

// room returns the bytes left below a watermark, given in eighths of the share. It may
// be negative.
func (a *Account) room(eighths int64) int64 { return a.share()/8*eighths - a.used.Load() }

// add charges bytes to the account and the session. A negative number releases bytes.
func (s *Session) add(bytes int64) {
	a := s.config.Account
	s.memory.Add(bytes)
	a.used.Add(bytes)
	a.budget.used.Add(bytes)
	if bytes < 0 {
		a.freed.Add(-bytes)
	}
}

// mayWait returns how many bytes of a stream may wait unsent, if that is more than
// unsentLeast. This limit falls first when memory runs short.
func (s *Session) mayWait() uint64 {
	return uint64(min(max(s.config.Account.room(2)/shareOfWaiting, 0), unsentMost))
}

// mayKeep returns how many unacknowledged bytes a stream may hold.
func (st *Stream) mayKeep() uint64 {
	a := st.s.config.Account
	switch {
	case a.pressure() == plenty:
	case st.limit <= st.next && st.next < st.out.end: // the other side's window is closed
		return 0
	default:
		return blockSize
	}
	return uint64(min(max(a.room(4)/shareOfRoom, leastKept), int64(st.s.config.Window)+unsentMost))
}

// window returns the receive window of a stream, in bytes.
func (st *Stream) window() uint64 {
	s, a := st.s, st.s.config.Account
	initial := uint64(s.config.InitialWindow)
	switch {
	case a.pressure() != plenty:
		a.tell()
		return min(initial, uint64(max(a.room(7)/shareOfRoom, leastWindow)))
	case s.received > s.config.Memory:
		return initial
	}
	free := min(a.budget.limit/4-a.budget.promised.Load(), a.share()/4-a.promised.Load()) + st.charged.promise
	return initial + min(uint64(s.config.Window)-initial, growth*st.taken, uint64(max(free, 0)/shareOfFree))
}

// charges holds the bytes that a stream charges to the account.
type charges struct{ memory, in, out, promise int64 }

// charge updates the charges of a stream. The session must be locked.
func (st *Stream) charge() {
	now := charges{memory: overCost}
	switch {
	case st.forgotten:
		now.memory = 0
	case st.reset == nil:
		now.in, now.out = int64(st.in.memory), int64(len(st.out.blocks))*blockSize
		now.memory = streamCost + now.in + now.out
		if ahead := st.taken + uint64(st.s.config.InitialWindow); !st.finSeen && st.granted > ahead {
			now.promise = int64(st.granted - ahead)
		}
	}
	was := st.charged
	if now == was {
		return
	}
	st.charged = now
	a := st.s.config.Account
	a.in.Add(now.in - was.in)
	a.out.Add(now.out - was.out)
	a.promised.Add(now.promise - was.promise)
	a.budget.promised.Add(now.promise - was.promise)
	if now.memory != was.memory {
		st.s.add(now.memory - was.memory)
	}
	if now.memory < was.memory {
		st.s.feed()
	}
}

// forget removes a stream that is over at both sides.
func (s *Session) forget(st *Stream) {
	delete(s.streams, st.id)
	s.settled++
	st.forgotten = true
	st.group.streams--
	if st.refused {
		s.refusals--
	}
	st.charge()
}

// refuse resets a stream of the other side without opening it. The session ends if it
// would have to remember too many refused streams.
func (s *Session) refuse(st *Stream, why Reason) {
	if why == NoMemory {
		s.config.Account.refuse()
	}
	st.refused = true
	s.refusals++
	st.abort(why)
	if s.refusals*overCost > s.config.Budget.limit/16 {
		go s.end(ErrMemory, true)
	}
}

// enter adds a session to those that use the budget; leave removes it.
func (b *Budget) enter(s *Session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sessions[s] = true
}

func (b *Budget) leave(s *Session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.sessions, s)
}

// refuse counts a refused stream.
func (a *Account) refuse() {
	a.budget.refused.Add(1)
	a.tell()
}

// tell reports a shortage, at most once in shortageEvery.
func (a *Account) tell() {
	now, last := time.Now().UnixNano(), a.reported.Load()
	if time.Duration(now-last) < shortageEvery || !a.reported.CompareAndSwap(last, now) {
		return
	}
	b := a.budget
	b.report(Shortage{
		Client: a.client, Own: a.used.Load(), Share: a.share(), Used: b.used.Load(), Limit: b.limit, Refused: b.refused.Load(), Reset: b.reset.Load(),
	})
}

// starves reports whether only a lack of memory stops a stream from taking another
// byte.
func (st *Stream) starves() bool {
	return st.out.full() && st.s.config.Account.roomOut() <= 0 && st.out.end-st.out.base < st.mayKeep()
}

// starve queues a stream whose writer waits for memory.
func (st *Stream) starve() {
	if !st.hungry && st.reset == nil {
		st.hungry = true
		st.s.hungry = append(st.s.hungry, st)
		st.s.watchOver()
	}
}

// feed wakes streams that wait for memory, in order, as many as the free memory allows.
// It reports whether some are left.
func (s *Session) feed() bool {
	for room := s.config.Account.roomOut(); room > 0 && len(s.hungry) > 0; s.hungry = s.hungry[1:] {
		st := s.hungry[0]
		st.hungry = false
		if st.reset == nil {
			st.writable.Signal()
			room -= blockSize
		}
	}
	return len(s.hungry) > 0
}

// hunger calls feed for watch: other sessions of the client may have freed memory. If
// streams still wait, it resets streams that make no progress, at most once in
// relieveEvery. It reports whether streams still wait.
func (s *Session) hunger(now int64) bool {
	if !s.feed() {
		return false
	}
	if time.Duration(now-s.relievedNS) >= relieveEvery {
		s.relievedNS = now
		go s.config.Account.relieve(s.config.Budget.standstill)
	}
	return true
}

// slow delays received bytes of a stream while the account has no memory for them. It
// waits until readers have freed some, for at most slowIdle without progress and
// slowMost in total.
func (s *Session) slow(id uint32) {
	a := s.config.Account
	if a.roomIn() > 0 {
		return
	}
	s.mu.Lock()
	st := s.streams[id]
	held := st != nil && st.reset == nil
	s.mu.Unlock()
	if !held {
		return
	}
	select { // one path of the client at a time
	case a.gate <- struct{}{}:
	case <-s.done:
		return
	}
	defer func() { <-a.gate }()
	begun, freed := time.Now(), a.freed.Load()
	for last := begun; a.roomIn() <= 0; {
		select {
		case <-s.done:
			return
		case <-time.After(slowTick):
		}
		now := time.Now()
		if f := a.freed.Load(); f != freed {
			freed, last = f, now
		}
		switch {
		case now.Sub(last) >= slowIdle:
			a.relieve(a.budget.deadlock)
			return
		case now.Sub(begun) >= slowMost:
			a.relieve(a.budget.standstill)
			return
		}
	}
}

// relieve resets streams that make no progress: in this account after patience, in
// other full accounts after standstill.
func (a *Account) relieve(patience time.Duration) {
	b := a.budget
	if !b.relieving.CompareAndSwap(false, true) {
		return
	}
	defer b.relieving.Store(false)
	b.mu.Lock()
	sessions := make([]*Session, 0, len(b.sessions))
	for s := range b.sessions {
		sessions = append(sessions, s)
	}
	b.mu.Unlock()
	for _, s := range sessions {
		own := s.config.Account
		if excess := max(-own.roomIn(), -own.roomOut()); excess < 0 {
			continue
		} else if own == a {
			s.shed(patience, excess+own.share()/16)
		} else {
			s.shed(b.standstill, excess+own.share()/16)
		}
	}
}

// shed resets streams that make no progress, the largest first, until excess bytes are
// free.
func (s *Session) shed(patience time.Duration, excess int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*Stream
	for _, st := range s.streams {
		if st.stuck(patience) {
			list = append(list, st)
		}
	}
	slices.SortFunc(list, func(a, b *Stream) int {
		return cmp.Or(cmp.Compare(b.charged.memory, a.charged.memory), cmp.Compare(a.id, b.id))
	})
	for before := s.memory.Load(); len(list) > 0 && before-s.memory.Load() < excess; list = list[1:] {
		st := list[0]
		s.config.Budget.reset.Add(1)
		if st.abort(NoMemory); st.reset == nil { // no frame of it was sent
			st.over(&ResetError{Reason: NoMemory})
			st.settle()
		}
		s.config.Account.tell()
	}
}

// stuck reports whether a stream has held bytes for patience without progress. Bytes
// that wait for a path do not count while all paths are stalled.
func (st *Stream) stuck(patience time.Duration) bool {
	s := st.s
	moving := slices.ContainsFunc(s.paths, func(p *Path) bool { return !p.stalled })
	switch {
	case st.reset != nil || time.Duration(s.nowNS()-st.stillNS) < patience:
		return false
	case st.in.waiting > st.in.behind: // its reader takes no bytes
		return true
	case st.in.behind > 0: // the missing bytes do not arrive
		return moving
	}
	// The other side's reader takes no bytes.
	return patience >= s.config.Budget.standstill && moving && len(st.out.blocks) > 0 && st.limit <= st.next
}
