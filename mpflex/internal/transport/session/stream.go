package session

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"sync"
	"time"

	"mplab/mpflex/internal/transport/frame"
)

// Reason is why a stream was reset.
type Reason uint32

// The reasons of resets.
const (
	Aborted     Reason = 1 // by the application, or its connection
	TooMany     Reason = 2 // more streams than the other side takes
	SessionOver Reason = 3 // the session has ended
	Violation   Reason = 4 // the other side broke the protocol
	NoMemory    Reason = 5 // the side that says so has none left, see Budget
)

var reasons = map[Reason]string{
	Aborted: "reset by the other end", TooMany: "too many streams", SessionOver: "the session is over", Violation: "the protocol was broken",
	NoMemory: "no memory is left for it",
}

// ResetError is the error of a stream that was reset.
type ResetError struct {
	Reason Reason
	Cause  error // why the session is over; nil with other reasons
}

// Error implements error.
func (e *ResetError) Error() string {
	text, ok := reasons[e.Reason]
	switch {
	case !ok:
		return fmt.Sprintf("reset, reason %d", e.Reason)
	case e.Cause != nil:
		return text + ": " + e.Cause.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *ResetError) Unwrap() error { return e.Cause }

// unsentMost is how many bytes a stream may hold that were not sent: more of
// them do not make it faster, and are memory.
const (
	unsentMost  = 512 << 10
	unsentLeast = 32 << 10
)

// Stream is a pair of byte streams, one each way. Its methods may be used by
// several goroutines; those that write, and those that read, by one at a time.
type Stream struct {
	s  *Session
	id uint32

	// All below is guarded by the session's lock.
	out      outgoing
	next     uint64 // of out: not placed yet
	limit    uint64 // to which the other side takes
	acked    uint64 // below: arrived; one more with the end of the stream
	group    *group
	queued   bool // stands in group
	finished bool // nothing follows out.end
	finSent  bool

	in       incoming
	taken    uint64 // by the reader
	granted  uint64 // limit that was told
	finAt    uint64 // end of in, with finSeen
	finSeen  bool
	ackedNow uint64 // what the last acknowledgement told
	ackNS    int64  // when it was sent
	ackDue   bool
	ackSoon  bool // an acknowledgement waits for more to come with it

	reset    error  // not nil: over
	told     Reason // by us; 0: not
	resetDue bool
	closed   bool // nobody reads or writes any more
	linger   int

	readable, writable      sync.Cond
	readTimeout, writeTimer *time.Timer
	readLate, writeLate     bool
	charged                 charges
	hungry                  bool  // waits in the session for memory
	refused                 bool  // was never open
	stillNS                 int64 // since when it has made no progress with what it holds
	forgotten               bool  // by the session
	stats                   StreamStatus
	movedNS                 int64 // when a path last took or brought something of it
}

func (s *Session) newStream(id uint32) *Stream {
	st := &Stream{
		s: s, id: id, limit: uint64(s.peer.InitialWindow), granted: uint64(s.config.InitialWindow), group: s.defaultGroup, linger: -1,
	}
	st.group.streams++
	st.readable.L, st.writable.L = &s.mu, &s.mu
	st.stats.Opened, st.movedNS = time.Now(), s.nowNS()
	st.stillNS = st.movedNS
	s.streams[id] = st
	st.charge()
	return st
}

// ID is the stream's number in its session.
func (st *Stream) ID() uint32 { return st.id }

// Session is the session that the stream belongs to.
func (st *Stream) Session() *Session { return st.s }

// SetScheme sets how what the stream sends from now on is spread over the paths.
func (st *Stream) SetScheme(scheme *Scheme) {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	waiting := st.queued
	st.leave()
	if !st.forgotten {
		g := st.s.groupOf(scheme)
		g.streams++
		st.group.streams--
		st.group = g
	}
	if waiting {
		st.enter()
	}
}

// mayWrite says whether the stream takes another byte from the application.
func (st *Stream) mayWrite() bool {
	if st.out.end-st.out.base >= st.mayKeep() || st.out.full() && st.s.config.Account.roomOut() <= 0 {
		return false
	}
	unsent := st.out.end - st.next
	return unsent < unsentLeast || unsent < st.s.mayWait() && st.s.unsent < st.s.config.Memory
}

// offer wakes the writer if the stream takes another byte, or will as soon as
// there is memory.
func (st *Stream) offer() {
	if st.mayWrite() {
		st.writable.Signal()
	} else if st.starves() {
		st.starve()
	}
}

// await waits until a byte may be written, with the session locked.
func (st *Stream) await() error {
	for {
		switch {
		case st.reset != nil:
			return st.reset
		case st.finished:
			return net.ErrClosed
		case st.writeLate:
			return os.ErrDeadlineExceeded
		case st.mayWrite():
			return nil
		case st.starves():
			st.starve()
		}
		st.writable.Wait()
	}
}

// added counts n bytes that were put in their place.
func (st *Stream) added(n int, b *block) {
	if st.out.base == st.out.end {
		st.stillNS = st.s.nowNS()
	}
	st.out.end += uint64(n)
	st.s.unsent += n
	st.stats.BytesOut += int64(n)
	b.drop()
	st.charge()
	if n > 0 {
		st.enter()
		st.s.wake()
	}
}

// Write implements io.Writer: it returns when the bytes wait to be sent.
func (st *Stream) Write(p []byte) (int, error) {
	s, n := st.s, 0
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(p) > 0 {
		if err := st.await(); err != nil {
			return n, err
		}
		place, b := st.out.place()
		k := copy(place, p)
		st.added(k, b)
		p, n = p[k:], n+k
	}
	return n, nil
}

// Flush waits until all that was written has arrived at the other end, the stream
// is reset, or the timeout is over.
func (st *Stream) Flush(timeout time.Duration) {
	mu := &st.s.mu
	mu.Lock()
	defer mu.Unlock()
	late := false
	defer time.AfterFunc(timeout, func() {
		mu.Lock()
		defer mu.Unlock()
		late = true
		st.writable.Broadcast()
	}).Stop()
	for st.acked < st.out.end && st.reset == nil && !late {
		st.writable.Wait()
	}
}

// CloseWrite ends what the stream sends; it may still be read.
func (st *Stream) CloseWrite() error {
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.reset != nil {
		return st.reset
	}
	if !st.finished {
		st.finished = true
		st.enter()
		s.wake()
	}
	return nil
}

// Read implements io.Reader.
func (st *Stream) Read(p []byte) (int, error) {
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := st.awaitData(); err != nil {
		return 0, err
	}
	n, memory := 0, 0
	for n < len(p) && len(st.in.ready) > 0 {
		first := &st.in.ready[0]
		k := copy(p[n:], first.data)
		n += k
		if first.data = first.data[k:]; len(first.data) == 0 {
			memory += first.cost()
			first.held.free()
			st.in.ready = st.in.ready[1:]
		}
	}
	st.consumed(n, memory)
	return n, nil
}

// WriteTo implements io.WriterTo: received bytes are not copied.
func (st *Stream) WriteTo(w io.Writer) (int64, error) { return st.CopyTo(w, math.MaxInt64) }

// CopyTo is WriteTo that stops as soon as n bytes, or some more, are written.
func (st *Stream) CopyTo(w io.Writer, n int64) (int64, error) {
	s, total := st.s, int64(0)
	var list []piece
	var bytes net.Buffers
	for total < n {
		s.mu.Lock()
		err := st.awaitData()
		if err != nil {
			s.mu.Unlock()
			if err == io.EOF {
				err = nil
			}
			return total, err
		}
		const most = 64
		n := min(len(st.in.ready), most)
		list = append(list[:0], st.in.ready[:n]...)
		clear(st.in.ready[:n])
		if st.in.ready = st.in.ready[n:]; len(st.in.ready) == 0 {
			st.in.ready = nil
		}
		s.mu.Unlock()
		bytes = bytes[:0]
		for _, p := range list {
			bytes = append(bytes, p.data)
		}
		whole := bytes
		k, err := bytes.WriteTo(w)
		bytes = whole
		clear(bytes)
		total += k
		memory := 0
		for i := range list {
			memory += list[i].cost()
			list[i].held.free()
		}
		s.mu.Lock()
		st.consumed(int(k), memory)
		s.mu.Unlock()
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// awaitData waits until there is something to read, with the session locked.
func (st *Stream) awaitData() error {
	for {
		switch {
		case len(st.in.ready) > 0 && st.reset == nil:
			return nil
		case st.finSeen && st.in.next == st.finAt && st.taken == st.finAt && (st.reset == nil || st.closed):
			return io.EOF
		case st.reset != nil:
			return st.reset
		case st.readLate:
			return os.ErrDeadlineExceeded
		}
		st.readable.Wait()
	}
}

// consumed counts what the reader took and the memory that this freed, and
// opens the window for more.
func (st *Stream) consumed(n, memory int) {
	if n > 0 {
		st.stillNS = st.s.nowNS()
	}
	st.taken += uint64(n)
	st.stats.BytesIn += int64(n)
	if st.reset != nil {
		return
	}
	st.in.waiting -= n
	st.s.received -= n
	st.in.memory -= memory
	if window := st.window(); st.taken+window >= st.granted+window/4 && !(st.finSeen && st.in.next == st.finAt) {
		st.granted = max(st.granted, st.taken+window)
		st.dueAck()
	}
	st.charge()
	st.settle()
}

// Close ends both directions: in order when the other side has ended its own
// and all was read, else by a reset of what it still sends.
func (st *Stream) Close() error {
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	st.closed = true
	if st.linger == 0 || st.reset == nil && !(st.finSeen && st.taken == st.finAt) {
		st.abort(Aborted)
		return nil
	}
	if st.reset == nil && !st.finished {
		st.finished = true
		st.enter()
		s.wake()
	}
	st.settle()
	return nil
}

// SetLinger with 0 makes Close reset the stream, as that of net.TCPConn does.
func (st *Stream) SetLinger(sec int) error {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	st.linger = sec
	return nil
}

// Abort resets the stream.
func (st *Stream) Abort(why Reason) {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	st.abort(why)
}

// abort resets the stream, unless it is over, with the session locked.
func (st *Stream) abort(why Reason) {
	if st.reset != nil || st.done() {
		st.settle()
		return
	}
	st.over(&ResetError{Reason: why})
	st.told, st.resetDue = why, true
	st.s.control.push(st)
	st.s.wake()
}

// over ends the stream at once.
func (st *Stream) over(err error) {
	if st.reset == nil {
		st.reset = err
	}
	st.leave()
	st.s.unsent -= int(st.out.end - st.next)
	st.next = st.out.end
	st.out.clear()
	st.s.received -= st.in.waiting
	st.in.clear()
	st.charge()
	st.readable.Broadcast()
	st.writable.Broadcast()
}

// done says whether both directions have ended, and the other side knows.
func (st *Stream) done() bool {
	return st.finSent && st.acked > st.out.end && st.finSeen && st.in.next == st.finAt && st.ackedNow > st.finAt
}

// settle forgets a stream that is over for both sides.
func (st *Stream) settle() {
	if st.reset != nil && st.told == 0 || st.reset == nil && st.done() && st.taken == st.finAt {
		if st.s.streams[st.id] == st {
			st.s.forget(st)
		}
	}
}

// dueAck asks for an acknowledgement to be sent at once.
func (st *Stream) dueAck() {
	if st.reset == nil && !st.ackDue {
		st.ackDue = true
		st.s.control.push(st)
		st.s.wake()
	}
}

// appendControl appends the frames that are due of a stream.
func (st *Stream) appendControl(b []byte) []byte {
	if st.resetDue {
		st.resetDue = false
		b = frame.Header{Type: frame.Reset, Stream: st.id, Seq: uint32(st.told)}.Append(b)
	}
	if st.ackDue && st.reset == nil {
		upTo := st.in.next
		if st.finSeen && upTo == st.finAt {
			upTo++
		}
		st.ackedNow, st.ackNS = upTo, st.s.nowNS()
		b = frame.Header{Type: frame.Ack, Size: 4, Stream: st.id, Seq: uint32(upTo)}.Append(b)
		b = append(b, byte(st.granted>>24), byte(st.granted>>16), byte(st.granted>>8), byte(st.granted))
	}
	st.ackDue, st.ackSoon = false, false
	st.settle()
	return b
}

// LocalAddr and RemoteAddr name the stream; it has no address.
func (st *Stream) LocalAddr() net.Addr  { return address(st.id) }
func (st *Stream) RemoteAddr() net.Addr { return address(st.id) }

type address uint32

func (address) Network() string  { return "mpflex" }
func (a address) String() string { return fmt.Sprintf("stream %d", uint32(a)) }

// SetDeadline implements net.Conn.
func (st *Stream) SetDeadline(t time.Time) error {
	return errors.Join(st.SetReadDeadline(t), st.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (st *Stream) SetReadDeadline(t time.Time) error {
	st.deadline(t, &st.readTimeout, &st.readLate, &st.readable)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (st *Stream) SetWriteDeadline(t time.Time) error {
	st.deadline(t, &st.writeTimer, &st.writeLate, &st.writable)
	return nil
}

func (st *Stream) deadline(t time.Time, timer **time.Timer, late *bool, cond *sync.Cond) {
	mu := &st.s.mu
	mu.Lock()
	defer mu.Unlock()
	if *timer != nil {
		(*timer).Stop()
		*timer = nil
	}
	*late = false
	if t.IsZero() {
		return
	}
	var own *time.Timer
	own = time.AfterFunc(time.Until(t), func() {
		mu.Lock()
		defer mu.Unlock()
		if *timer == own {
			*late = true
			cond.Broadcast()
		}
	})
	*timer = own
}
