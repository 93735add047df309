package relay

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"mplab/internal/netx"
)

// The reasons why a session ends, other than by both ends of stream.
var (
	// ErrIdle reports that no byte moved in either direction during the idle timeout.
	ErrIdle = errors.New("idle timeout")
	// ErrShutdown reports that the program is ending.
	ErrShutdown = errors.New("the program is ending")
)

// Stream is one side of a session, such as a *net.TCPConn. Between two of these the
// kernel moves the bytes (splice(2)).
type Stream interface {
	net.Conn
	CloseWrite() error
	SetLinger(sec int) error
}

const (
	// chunk is the number of bytes after which the counters are updated.
	chunk = 256 << 10
	// maxTick bounds how long a direction that moves bytes waits before it counts them.
	// A direction that moved none in that time rests: it waits for the next byte or the
	// idle timeout.
	maxTick = 5 * time.Second
)

// Session relays between A, the application's side, and B, the network's side. Up is A
// to B.
type Session struct {
	A, B Stream
	Idle time.Duration // idle timeout; 0: none
	// Open, if set, runs before the first byte of B is relayed. It reads the bytes
	// before those for the application. Its error ends the session.
	Open func() error
	// Sample, if set, is called while both sides are open: every few seconds, and
	// before a side is closed. It must be safe for concurrent use. Set it only if
	// needed: it keeps both directions from resting.
	Sample func()

	Up, Down atomic.Int64 // bytes relayed up to now

	ended [2]atomic.Bool // the streams to A and to B
	moved atomic.Int64   // time of the last moved byte, in ns since began
	once  sync.Once
	cause error
}

// Run relays until both directions have ended, and closes both sides. It returns nil
// after an orderly end, otherwise the reason why both sides were reset.
func (s *Session) Run() error {
	s.touch()
	up := make(chan struct{})
	go func() {
		defer close(up)
		s.direction(s.B, s.A, &s.Up)
	}()
	if s.Open == nil {
		s.direction(s.A, s.B, &s.Down)
	} else if err := s.Open(); err != nil {
		s.Abort(err)
	} else {
		s.touch()
		s.direction(s.A, s.B, &s.Down)
	}
	<-up
	s.once.Do(func() {
		_ = s.A.Close()
		_ = s.B.Close()
	})
	return s.cause
}

// Abort resets both sides. Run returns the first cause.
func (s *Session) Abort(cause error) {
	s.once.Do(func() {
		s.sample()
		s.cause = cause
		netx.Abort(s.A)
		netx.Abort(s.B)
	})
}

// direction relays one direction until the end of stream, and ends the stream to dst.
func (s *Session) direction(dst, src Stream, count *atomic.Int64) {
	resting := false
	for {
		if err := src.SetReadDeadline(s.deadline(resting)); err != nil {
			s.Abort(err)
			return
		}
		n, ended, err := step(dst, src, resting)
		if n > 0 {
			count.Add(n)
			s.touch()
		}
		s.sample()
		late := errors.Is(err, os.ErrDeadlineExceeded)
		resting = late && n == 0 && s.Sample == nil && canRest(dst, src)
		switch {
		case late:
			if s.idle() {
				s.Abort(ErrIdle)
				return
			}
		case err != nil:
			s.Abort(err)
			return
		case ended:
			if s.wasReset(src) {
				s.Abort(syscall.ECONNRESET)
				return
			}
			s.end(dst).Store(true)
			if err := dst.CloseWrite(); err != nil && !errors.Is(err, syscall.ENOTCONN) {
				s.Abort(err)
			}
			return
		}
	}
}

// deadline returns how long a direction waits for bytes.
func (s *Session) deadline(resting bool) time.Time {
	switch {
	case !resting:
		return time.Now().Add(s.tick())
	case s.Idle > 0:
		return began.Add(time.Duration(s.moved.Load()) + s.Idle)
	}
	return time.Time{}
}

// end returns whether the stream to a side has ended.
func (s *Session) end(side Stream) *atomic.Bool {
	if side == s.A {
		return &s.ended[0]
	}
	return &s.ended[1]
}

// wasReset reports whether an apparent end of src's stream is a reset that the other
// direction has already read.
func (s *Session) wasReset(src Stream) bool {
	conn, ok := src.(*net.TCPConn)
	return ok && !s.end(src).Load() && netx.WasReset(conn)
}

// copier is a stream that moves bytes without a copy. Both methods move n bytes or
// more. They move fewer only at the end or with an error.
type copier interface {
	CopyTo(w io.Writer, n int64) (int64, error)
	CopyFrom(r io.Reader, n int64) (int64, error)
}

// step relays about a chunk and reports whether the stream ended. A resting direction
// relays the first bytes that arrive, or only waits for them.
func step(dst, src Stream, resting bool) (n int64, ended bool, err error) {
	limit := int64(chunk)
	if resting {
		if !copies(dst, src) {
			return 0, false, netx.AwaitData(src.(*net.TCPConn)) // canRest has checked the type
		}
		limit = 1
	}
	n, err = move(dst, src, limit)
	return n, err == nil && n < limit, err
}

func copies(dst, src Stream) bool {
	_, from := src.(copier)
	_, to := dst.(copier)
	return from || to
}

// canRest reports whether the direction can wait for the first byte after a silence.
func canRest(dst, src Stream) bool {
	_, tcp := src.(*net.TCPConn)
	return tcp || copies(dst, src)
}

// move relays n bytes, or more with a copier. It relays fewer at the end of the stream.
func move(dst, src Stream, n int64) (int64, error) {
	if c, ok := src.(copier); ok {
		return c.CopyTo(dst, n)
	}
	if c, ok := dst.(copier); ok {
		return c.CopyFrom(src, n)
	}
	return io.Copy(dst, &io.LimitedReader{R: src, N: n})
}

func (s *Session) sample() {
	if s.Sample != nil {
		s.Sample()
	}
}

// began is the start of the program. Times since began use the monotonic clock.
var began = time.Now()

func (s *Session) touch() { s.moved.Store(int64(time.Since(began))) }

func (s *Session) idle() bool {
	return s.Idle > 0 && time.Since(began)-time.Duration(s.moved.Load()) >= s.Idle
}

func (s *Session) tick() time.Duration {
	if s.Idle > 0 {
		return min(max(s.Idle/4, time.Millisecond), maxTick)
	}
	return maxTick
}
