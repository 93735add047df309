package session

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ErrMemory: the memory for sessions is used up. No stream is opened. A session
// ends with it when it refuses more streams than it can remember.
var ErrMemory = errors.New("the memory for sessions is used up")

// Budget bounds the memory of all sessions that use it: buffers of received
// bytes and of bytes that may have to be sent again, datagrams that wait to be
// sent, and a fixed cost for each open stream. The memory of a path (buffers,
// TLS, up to [mostControl] bytes of answers) is not part of it.
//
// Each client has an [Account]. An account may use at most half of what the
// other accounts leave, so that a client never shuts out another one. Each
// account applies these marks to its own share:
//
//   - From a quarter on, streams that wait to be sent keep little; from half on,
//     all streams keep less.
//   - From three quarters on, windows are small and a stream keeps one block.
//   - From seven eighths on, new streams are refused.
//   - When the rest is full, the session slows down: it reads no more from
//     applications, and takes received bytes as fast as readers free memory.
//   - A stream is reset with [NoMemory] only then, and only when it has stood
//     still for [standstill], or for [deadlock] while nothing else moves.
//
// The other side may send the initial window of each stream without asking.
// Windows beyond that are promises of at most a quarter of the share.
type Budget struct {
	limit  int64
	report func(Shortage)
	// How long a stream stands still before it may be reset.
	standstill, deadlock time.Duration

	used     atomic.Int64 // bytes
	promised atomic.Int64 // bytes of windows beyond the initial ones
	refused  atomic.Int64 // streams
	reset    atomic.Int64

	relieving atomic.Bool

	mu       sync.Mutex
	sessions map[*Session]bool
}

// Account is the memory that the sessions of one client use together.
type Account struct {
	budget *Budget
	client string
	parts  int64 // the share is 1/parts of what other accounts leave

	used     atomic.Int64 // bytes, in and out included
	in, out  atomic.Int64 // bytes of buffers: received, and not acknowledged by the other side
	promised atomic.Int64
	freed    atomic.Int64  // bytes of all that was given back
	told     atomic.Int64  // time of the last report, unix nanoseconds
	gate     chan struct{} // held by the path that waits in slow
}

// Shortage reports that a client's share is nearly used up: sessions slow down
// or refuse streams. Refused and Reset count since the budget was made.
type Shortage struct {
	Client         string // empty at the agent
	Own, Share     int64  // bytes that the client uses, and may use now
	Used, Limit    int64  // bytes of the whole budget
	Refused, Reset int64  // streams
}

const (
	// shortageEvery is the least time between two reports about a client.
	shortageEvery = 10 * time.Second
	// streamCost is the memory of an open stream without any bytes: the stream,
	// and what serves it at the agent or at the proxy (docs/mpflex.md has the
	// measurement).
	streamCost = 20 << 10
	// overCost is the memory of a stream that was reset, until the other side
	// has answered.
	overCost = 1 << 10
	// pieceCost is the memory of a received message beside its bytes.
	pieceCost = 64
	// growth is how many bytes a window grows for each byte that the reader
	// takes: enough that it never holds up a stream that did not fill its initial
	// window in a round trip. Streams of a few bytes hold no promise.
	growth = 8
	// shareOfFree is the part of the remaining promises that one stream gets.
	shareOfFree = 4
	// shareOfRoom is the part of the memory below a mark that one stream may
	// keep for the other side, or gets as its window when memory is scarce. It
	// always gets the least.
	shareOfRoom = 16
	leastKept   = 64 << 10
	leastWindow = 32 << 10
	// shareOfWaiting is the part of the memory below a mark that may wait to be
	// sent in one stream.
	shareOfWaiting = 128
	// leastData is what all streams of an account may always hold in buffers, so
	// that they go on when other clients have made its share smaller.
	leastData = 512 << 10
	// standstill is how long a stream stands still before it is reset to make
	// room. Readers that are slow, and outages of a path, are shorter.
	standstill = 30 * time.Second
	// deadlock is the same while all readers of the account stand still.
	deadlock = 5 * time.Second
	// slowTick is how often a path that waits for memory looks again, slowIdle
	// how long it waits while no memory is freed, slowMost how long in all. It
	// then takes one frame: acknowledgements, which free memory, may be behind it.
	slowTick = time.Millisecond
	slowIdle = 100 * time.Millisecond
	slowMost = time.Second
	// relieveEvery is the least time between two attempts to make room for
	// streams that wait to send.
	relieveEvery = time.Second
)

// NewBudget returns a budget of limit bytes. It calls report, if not nil, at
// most every ten seconds for each client that is short of memory; report must
// not block.
func NewBudget(limit int64, report func(Shortage)) *Budget {
	if report == nil {
		report = func(Shortage) {}
	}
	return &Budget{limit: limit, report: report, standstill: standstill, deadlock: deadlock, sessions: map[*Session]bool{}}
}

// Account returns the account of one of several clients. Its sessions may use
// half of what other accounts leave.
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

// data returns how many bytes of the share are left for buffers: all but the
// fixed cost of streams.
func (a *Account) data() int64 {
	return max(a.share()-a.used.Load()+a.in.Load()+a.out.Load(), leastData)
}

// roomIn and roomOut return how many bytes may be added to the buffers of each
// direction. A quarter is reserved for the other one.
func (a *Account) roomIn() int64 {
	data := a.data()
	return data - a.in.Load() - max(a.out.Load(), data/4)
}

func (a *Account) roomOut() int64 {
	data := a.data()
	return data - a.out.Load() - max(a.in.Load(), data/4)
}

// pressure is how short memory is.
type pressure uint8

const (
	plenty pressure = iota
	scarce          // three quarters are used
	short           // seven eighths
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

// room returns how many bytes may be used until so many eighths of the share
// are; it may be negative.
func (a *Account) room(eighths int64) int64 { return a.share()/8*eighths - a.used.Load() }

// add charges bytes to the account and to the session; a negative number gives
// them back.
func (s *Session) add(bytes int64) {
	a := s.config.Account
	s.memory.Add(bytes)
	a.used.Add(bytes)
	a.budget.used.Add(bytes)
	if bytes < 0 {
		a.freed.Add(-bytes)
	}
}

// mayWait returns how many bytes of a stream may wait to be sent, beyond the
// least. Streams that do not get on are the first to be kept short.
func (s *Session) mayWait() uint64 {
	return uint64(min(max(s.config.Account.room(2)/shareOfWaiting, 0), unsentMost))
}

// mayKeep returns how many bytes a stream may hold that the other side does not
// have.
func (st *Stream) mayKeep() uint64 {
	a := st.s.config.Account
	switch {
	case a.pressure() == plenty:
	case st.limit <= st.next && st.next < st.out.end: // the window is closed
		return 0
	default:
		return blockSize
	}
	return uint64(min(max(a.room(4)/shareOfRoom, leastKept), int64(st.s.config.Window)+unsentMost))
}

// window returns how many bytes of a stream may be under way.
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

// charges are the bytes that the account is charged with for a stream.
type charges struct{ memory, in, out, promise int64 }

// charge updates the charges of a stream, with the session locked.
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

// forget takes a stream that is over for both sides out of the session.
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

// refuse resets a stream of the other side that is not opened. The session ends
// when it would have to remember too many of them.
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

// enter and leave: the budget knows the sessions that use it.
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

// refuse counts a stream that is not opened.
func (a *Account) refuse() {
	a.budget.refused.Add(1)
	a.tell()
}

// tell reports a shortage, unless that was done a moment ago.
func (a *Account) tell() {
	now, last := time.Now().UnixNano(), a.told.Load()
	if time.Duration(now-last) < shortageEvery || !a.told.CompareAndSwap(last, now) {
		return
	}
	b := a.budget
	b.report(Shortage{
		Client: a.client, Own: a.used.Load(), Share: a.share(), Used: b.used.Load(), Limit: b.limit, Refused: b.refused.Load(), Reset: b.reset.Load(),
	})
}

// starves says whether only memory keeps a stream from taking another byte.
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

// feed wakes the streams that wait for memory, in their order, as many as there
// is memory for. It says whether some are left.
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

// hunger is feed for the watch: memory of other sessions of the client may be
// free. When there is none for long, it makes room.
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

// slow delays received bytes of a stream while the account has no memory for
// them: until readers have freed some, and not for long when they do not.
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

// relieve resets streams that have stood still: those of the account for so
// long, and those of other accounts that are full for standstill.
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

// shed resets streams that have stood still, the largest first, until so many
// bytes are free.
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
		if st.abort(NoMemory); st.reset == nil { // nothing of it is left to be told
			st.over(&ResetError{Reason: NoMemory})
			st.settle()
		}
		s.config.Account.tell()
	}
}

// stuck says whether a stream has held bytes for so long without any progress.
// What waits for a path does not count while all of them are stalled.
func (st *Stream) stuck(patience time.Duration) bool {
	s := st.s
	moving := slices.ContainsFunc(s.paths, func(p *Path) bool { return !p.stalled })
	switch {
	case st.reset != nil || time.Duration(s.nowNS()-st.stillNS) < patience:
		return false
	case st.in.waiting > st.in.behind: // its reader takes nothing
		return true
	case st.in.behind > 0: // what is missing does not come
		return moving
	}
	// The other side's reader takes nothing.
	return patience >= s.config.Budget.standstill && moving && len(st.out.blocks) > 0 && st.limit <= st.next
}
