package session

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ErrMemory: the budget is used up. No stream is opened, and a session that
// holds too much of it without data that could be given up is ended.
var ErrMemory = errors.New("the memory for sessions is used up")

// Budget bounds the memory of all sessions that are made with it: buffers of
// received bytes and of those that may have to be sent again, and what a stream
// itself takes. Nothing waits for somebody else's memory: a stream may always
// keep a little, and so goes on.
//
// Of the bytes that the other side may send of a stream, only those of its
// initial window are not asked for. Windows beyond that are promises of a quarter
// of the budget: the less of it is left, the smaller windows become. As long as
// all streams together stay within their initial windows and these promises,
// nobody loses anything. For when they do not, there are marks:
//
//   - from a quarter on, least is taken of streams that wait to be sent, from a
//     half on of all,
//   - from three quarters on, windows become small,
//   - from seven eighths on, new streams are refused,
//   - when all is used, the session that holds most loses the streams that hold
//     most of it, with [NoMemory].
//
// One session has half of all that, with the same marks.
type Budget struct {
	limit  int64
	report func(Shortage)

	used     atomic.Int64 // bytes
	promised atomic.Int64 // bytes of windows beyond the initial ones
	refused  atomic.Int64 // streams
	reset    atomic.Int64
	told     atomic.Int64 // when the last shortage was, unix nanoseconds

	relief    sync.Mutex  // held by who makes room
	relieving atomic.Bool // somebody does, or is about to

	mu       sync.Mutex
	sessions map[*Session]bool
}

// Shortage tells of a budget of which so much is used that sessions are slowed
// down, or worse. Refused and Reset count from the beginning of the budget.
type Shortage struct {
	Used, Limit    int64 // bytes
	Refused, Reset int64 // streams
}

const (
	// shortageEvery is how often a shortage is reported, at most.
	shortageEvery = 10 * time.Second
	// streamCost is what an open stream takes without any bytes: the stream,
	// and what serves it at the agent or at the proxy (docs/mpflex.md has the
	// measurement).
	streamCost = 20 << 10
	// overCost is what is left of one that was reset, until the other side
	// has answered.
	overCost = 1 << 10
	// pieceCost is what a received message takes beside its bytes.
	pieceCost = 64
	// growth is how many bytes a window grows for each that the reader takes:
	// enough that it never holds up a stream that did not fill its initial
	// window in a round trip, and streams of a few bytes hold no promise.
	growth = 8
	// shareOfFree is which part of what may still be promised one stream gets.
	shareOfFree = 4
	// shareOfRoom is which part of what is free below a mark one stream may
	// keep for the other side, or gets as its window when memory is scarce;
	// but it always may have the least.
	shareOfRoom = 16
	leastKept   = 64 << 10
	leastWindow = 32 << 10
	// shareOfWaiting is which part of what is free below a mark may wait of one
	// stream to be sent.
	shareOfWaiting = 128
)

// NewBudget returns a budget of a number of bytes. Report, if not nil, is told
// of shortages, at most every ten seconds; it must not block.
func NewBudget(limit int64, report func(Shortage)) *Budget {
	if report == nil {
		report = func(Shortage) {}
	}
	return &Budget{limit: limit, report: report, sessions: map[*Session]bool{}}
}

// Used is how many bytes of the budget are in use.
func (b *Budget) Used() int64 { return b.used.Load() }

// pressure is how short memory is.
type pressure uint8

const (
	plenty pressure = iota
	scarce          // three quarters are used
	short           // seven eighths
	spent           // all
)

func pressureOf(used, limit int64) pressure {
	switch {
	case used < limit/4*3:
		return plenty
	case used < limit/8*7:
		return scarce
	case used < limit:
		return short
	}
	return spent
}

// pressure is that of the session's own part, or of the whole budget.
func (s *Session) pressure() pressure {
	b := s.config.Budget
	return max(pressureOf(s.memory.Load(), b.limit/2), pressureOf(b.used.Load(), b.limit))
}

// room is how much may be used until so many eighths are, in bytes; it may be
// negative.
func (s *Session) room(eighths int64) int64 {
	b := s.config.Budget
	return min(b.limit/16*eighths-s.memory.Load(), b.limit/8*eighths-b.used.Load())
}

// mayWait is how many bytes of a stream may wait to be sent, beyond the least:
// those of streams that do not get on are the first to be kept short.
func (s *Session) mayWait() uint64 {
	return uint64(min(max(s.room(2)/shareOfWaiting, 0), unsentMost))
}

// mayKeep is how many bytes a stream may hold that the other side does not have.
func (st *Stream) mayKeep() uint64 {
	s := st.s
	if s.pressure() != plenty {
		return blockSize
	}
	return uint64(min(max(s.room(4)/shareOfRoom, leastKept), int64(s.config.Window)+unsentMost))
}

// window is how much a stream may have under way.
func (st *Stream) window() uint64 {
	s := st.s
	initial := uint64(s.config.InitialWindow)
	switch {
	case s.pressure() != plenty:
		s.config.Budget.tell()
		return min(initial, uint64(max(s.room(7)/shareOfRoom, leastWindow)))
	case s.received > s.config.Memory:
		return initial
	}
	b := s.config.Budget
	free := min(b.limit/4-b.promised.Load(), b.limit/8-s.promised) + st.promise
	return initial + min(uint64(s.config.Window)-initial, growth*st.taken, uint64(max(free, 0)/shareOfFree))
}

// charge brings up to date what a stream is charged with, with the session
// locked.
func (st *Stream) charge() {
	memory, promise := int64(overCost), int64(0)
	switch {
	case st.forgotten:
		memory = 0
	case st.reset == nil:
		memory = streamCost + int64(len(st.out.blocks))*blockSize + int64(st.in.memory)
		if ahead := st.taken + uint64(st.s.config.InitialWindow); !st.finSeen && st.granted > ahead {
			promise = int64(st.granted - ahead)
		}
	}
	b := st.s.config.Budget
	if promise != st.promise {
		b.promised.Add(promise - st.promise)
		st.s.promised += promise - st.promise
		st.promise = promise
	}
	if memory == st.memory {
		return
	}
	more := memory > st.memory
	own := st.s.memory.Add(memory - st.memory)
	used := b.used.Add(memory - st.memory)
	st.memory = memory
	if more && (used >= b.limit || own >= b.limit/2) && b.relieving.CompareAndSwap(false, true) {
		go b.relieve()
	}
}

// forget takes a stream that is over for both sides out of the session.
func (s *Session) forget(st *Stream) {
	delete(s.streams, st.id)
	s.settled++
	st.forgotten = true
	st.charge()
}

// enter and leave: the budget knows the sessions that hold of it.
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
func (b *Budget) refuse() {
	b.refused.Add(1)
	b.tell()
}

// tell reports a shortage, unless that was done a moment ago.
func (b *Budget) tell() {
	now, last := time.Now().UnixNano(), b.told.Load()
	if time.Duration(now-last) < shortageEvery || !b.told.CompareAndSwap(last, now) {
		return
	}
	b.report(Shortage{Used: b.used.Load(), Limit: b.limit, Refused: b.refused.Load(), Reset: b.reset.Load()})
}

// wait waits while somebody makes room: who brings bytes then brings no more.
func (b *Budget) wait() {
	if b.relieving.Load() {
		b.relief.Lock()
		defer b.relief.Unlock()
	}
}

// relieve makes room until a sixteenth of what is too full is free.
func (b *Budget) relieve() {
	b.relief.Lock()
	defer b.relief.Unlock()
	defer b.relieving.Store(false)
	for {
		s, excess := b.heaviest()
		if s == nil {
			return
		}
		s.shed(excess)
	}
}

// heaviest is a session that is to give something up, and how many bytes; nil:
// none is.
func (b *Budget) heaviest() (*Session, int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var most *Session
	for s := range b.sessions {
		if most == nil || s.memory.Load() > most.memory.Load() {
			most = s
		}
	}
	if most == nil {
		return nil, 0
	}
	excess := int64(0)
	if used := b.used.Load(); used >= b.limit {
		excess = used - b.limit/16*15
	}
	if own, share := most.memory.Load(), b.limit/2; own >= share {
		excess = max(excess, own-share/16*15)
	}
	if excess == 0 {
		return nil, 0
	}
	return most, min(excess, max(most.memory.Load()/4, 1))
}

// shed resets the streams that hold most until so many bytes are free. A
// session without any that holds data ends.
func (s *Session) shed(excess int64) {
	s.mu.Lock()
	var list []*Stream
	for _, st := range s.streams {
		if st.memory > streamCost {
			list = append(list, st)
		}
	}
	slices.SortFunc(list, func(a, b *Stream) int { return cmp.Or(cmp.Compare(b.memory, a.memory), cmp.Compare(a.id, b.id)) })
	before := s.memory.Load()
	for _, st := range list {
		if before-s.memory.Load() >= excess {
			break
		}
		s.config.Budget.reset.Add(1)
		if st.abort(NoMemory); st.reset == nil { // nothing of it is left to be told
			st.over(&ResetError{Reason: NoMemory})
			st.settle()
		}
	}
	freed := before - s.memory.Load()
	s.mu.Unlock()
	s.config.Budget.tell()
	if freed <= 0 {
		s.end(ErrMemory, true)
	}
}
