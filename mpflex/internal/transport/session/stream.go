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
	Aborted     Reason = 1 // by the application or its connection
	TooMany     Reason = 2 // the sender of the reset allows no more streams
	SessionOver Reason = 3 // the session has ended
	Violation   Reason = 4 // the other side broke the protocol
	NoMemory    Reason = 5 // the sender of the reset is out of memory, see Budget
)

var reasons = map[Reason]string{
	Aborted: "reset by the other end", TooMany: "too many streams", SessionOver: "the session is over", Violation: "the protocol was broken",
	NoMemory: "no memory is left for it",
}

// ResetError is the error of a stream that was reset.
type ResetError struct {
	Reason Reason
	Cause  error // why the session ended; nil with other reasons
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

// Bounds of the unsent bytes of a stream. More would use memory without making the
// stream faster. unsentLeast is allowed even when memory is short.
const (
	unsentMost  = 512 << 10
	unsentLeast = 32 << 10
)

// Stream is a pair of byte streams, one for each direction. Several goroutines may use
// its methods, but at most one may write at a time, and one may read.
type Stream struct {
	s  *Session
	id uint32

	// All fields below are guarded by the session's lock.
	out      outgoing
	next     uint64 // offset of the first byte not placed on a path
	limit    uint64 // offset up to which the other side accepts bytes
	acked    uint64 // bytes below have arrived; out.end + 1: the end of the stream, too
	group    *group
	queued   bool // waits in group
	finished bool // no bytes follow out.end
	finSent  bool

	in       incoming
	taken    uint64 // bytes that the reader took
	granted  uint64 // limit that was promised to the other side
	finAt    uint64 // end of in, if finSeen
	finSeen  bool
	ackedNow uint64 // offset in the last acknowledgement sent
	ackNS    int64  // time of that acknowledgement
	ackDue   bool
	ackSoon  bool // an acknowledgement may wait for more bytes

	reset    error  // not nil: the stream is over
	resetWhy Reason // reason of an unanswered reset by this side; 0: none
	resetDue bool
	closed   bool // Close was called
	linger   int

	readable, writable      sync.Cond
	readTimeout, writeTimer *time.Timer
	readLate, writeLate     bool
	charged                 charges
	hungry                  bool  // waits in the session's queue for memory
	refused                 bool  // never open
	stillNS                 int64 // time of the last progress with the bytes it holds
	forgotten               bool  // removed from the session
	stats                   StreamStatus
	movedNS                 int64 // time when a path last sent or received bytes of it
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

// ID returns the stream's number in its session.
func (st *Stream) ID() uint32 { return st.id }

// Session returns the session of the stream.
func (st *Stream) Session() *Session { return st.s }

// SetScheme sets the scheme for the bytes that the stream sends from now on.
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

// mayWrite reports whether the stream takes another byte from the application.
func (st *Stream) mayWrite() bool {
	if st.out.end-st.out.base >= st.mayKeep() || st.out.full() && st.s.config.Account.roomOut() <= 0 {
		return false
	}
	unsent := st.out.end - st.next
	return unsent < unsentLeast || unsent < st.s.mayWait() && st.s.unsent < st.s.config.Memory
}

// offer wakes the writer if the stream takes another byte. If only memory is missing,
// it queues the stream for memory.
func (st *Stream) offer() {
	if st.mayWrite() {
		st.writable.Signal()
	} else if st.starves() {
		st.starve()
	}
}

// await waits until the stream takes another byte. The session must be locked.
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

// added counts n bytes that were stored in block b, and drops the reference to it.
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

// Write implements io.Writer. It returns when the bytes are queued.
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

// Flush waits until all written bytes have arrived at the other side, the stream is
// reset, or the timeout has passed.
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

// CloseWrite ends the sending direction. The stream can still be read.
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

// WriteTo implements io.WriterTo. It writes received bytes without a copy.
func (st *Stream) WriteTo(w io.Writer) (int64, error) { return st.CopyTo(w, math.MaxInt64) }

// CopyTo is WriteTo that stops as soon as n bytes or more are written.
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

// awaitData waits until there are bytes to read. The session must be locked.
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

// consumed counts the bytes that the reader took and the memory that this freed, and
// raises the other side's limit.
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

// Close ends both directions: with an end of stream if all bytes of the other side were
// read, otherwise with a reset.
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

// SetLinger with 0 makes Close reset the stream, as with net.TCPConn.
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

// abort resets the stream unless it is over. The session must be locked.
func (st *Stream) abort(why Reason) {
	if st.reset != nil || st.done() {
		st.settle()
		return
	}
	st.over(&ResetError{Reason: why})
	st.resetWhy, st.resetDue = why, true
	st.s.control.push(st)
	st.s.wake()
}

// over ends the stream at once and frees its bytes.
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

// done reports whether both directions have ended and the other side knows it.
func (st *Stream) done() bool {
	return st.finSent && st.acked > st.out.end && st.finSeen && st.in.next == st.finAt && st.ackedNow > st.finAt
}

// settle forgets a stream that is over at both sides.
func (st *Stream) settle() {
	if st.reset != nil && st.resetWhy == 0 || st.reset == nil && st.done() && st.taken == st.finAt {
		if st.s.streams[st.id] == st {
			st.s.forget(st)
		}
	}
}

// dueAck queues an acknowledgement that must be sent at once.
func (st *Stream) dueAck() {
	if st.reset == nil && !st.ackDue {
		st.ackDue = true
		st.s.control.push(st)
		st.s.wake()
	}
}

// appendControl appends the control frames of a stream that are due.
func (st *Stream) appendControl(b []byte) []byte {
	if st.resetDue {
		st.resetDue = false
		b = frame.Header{Type: frame.Reset, Stream: st.id, Seq: uint32(st.resetWhy)}.Append(b)
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

// LocalAddr returns the name of the stream: it has no address.
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
