package dnsforward

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"mplab/internal/netx"
	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/forward/carrier"
	"mplab/mpflex/internal/forward/relay"
	"mplab/mpflex/wire"
)

// errStalled reports that the server answered nothing during a query's timeout.
var errStalled = fmt.Errorf("no answer of the DNS server: %w", os.ErrDeadlineExceeded)

// upstream is one carrying connection to the server, with its queries.
type upstream struct {
	f      *Forwarder
	way    Way
	ctx    context.Context // also ends the opening of the connection
	cancel context.CancelFunc
	queue  chan []byte // framed queries

	mu       sync.Mutex // guards the fields below
	pending  map[uint16]*lookup
	lastID   uint16
	answered time.Time     // time of the last answer
	conn     *carrier.Conn // nil until open
	closed   bool
	cause    error
}

func newUpstream(ctx context.Context, f *Forwarder, way Way) *upstream {
	ctx, cancel := context.WithCancel(ctx)
	return &upstream{f: f, way: way, ctx: ctx, cancel: cancel, queue: make(chan []byte, 2*maxOutstanding), pending: make(map[uint16]*lookup)}
}

// add queues a lookup. It returns false if the connection is closed.
func (u *upstream) add(l *lookup) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return false
	}
	u.lastID++
	for u.pending[u.lastID] != nil {
		u.lastID++
	}
	select {
	case u.queue <- frame(l.query, u.lastID):
	default: // the connection is stuck: the lookup will time out
		return true
	}
	u.pending[u.lastID] = l
	return true
}

// run serves the connection from its opening to its log record.
func (u *upstream) run(ctx context.Context) {
	record := u.f.record(u.f.Addr())
	record.Dst.AddrPort = u.f.server
	record.UID, record.PID, record.Process = int64(os.Getuid()), os.Getpid(), "mpflex"
	record.Rule, record.Scheme = u.way.Rule, u.way.Scheme
	record.Transport = cmp.Or(u.way.Transport, record.Transport)
	defer u.cancel()
	open := u.way.Open
	if open == nil {
		open = u.f.dialer.Open
	}
	conn, err := open(u.ctx, carrier.Request{Command: wire.Connect, Source: u.f.Addr(), Destination: u.f.server})
	if err == nil {
		u.mu.Lock()
		u.conn = conn
		u.mu.Unlock()
		err = u.exchange(ctx, conn, &record)
		conn.Describe(&record)
	}
	left, err := u.close(err)
	for _, l := range left {
		u.retry(ctx, l)
	}
	record.DurationS = record.Opened.Since()
	record.Status, record.Error = carrier.Outcome(err)
	u.f.log.Write(record)
}

// retry repeats a lookup once on a new connection (RFC 7766 §6.2.4): a server may close
// its end at any time.
func (u *upstream) retry(ctx context.Context, l *lookup) {
	if l.retried || ctx.Err() != nil {
		u.f.fail(l)
		return
	}
	l.retried = true
	u.f.ask(ctx, l)
}

// exchange writes queries and reads answers until the connection ends. It returns nil
// after an orderly end.
func (u *upstream) exchange(ctx context.Context, conn *carrier.Conn, record *connlog.Connection) error {
	stop := context.AfterFunc(ctx, func() { u.abort(relay.ErrShutdown) })
	defer stop()
	written := make(chan int64, 1)
	quit := make(chan struct{})
	go func() { written <- u.writeAll(conn, quit) }()

	err := conn.Answer()
	if err == nil {
		err = u.readAll(conn, &record.BytesDown)
	}
	conn.Sample()
	close(quit)
	if err == nil {
		_ = conn.Close()
	} else {
		netx.Abort(conn)
	}
	record.BytesUp = <-written
	return err
}

// writeAll sends the queued queries until quit.
func (u *upstream) writeAll(conn *carrier.Conn, quit <-chan struct{}) (sent int64) {
	for {
		select {
		case <-quit:
			return sent
		case message := <-u.queue:
			n, err := conn.Write(message)
			sent += int64(n)
			if err != nil {
				return sent // the reader gets the same error
			}
		}
	}
}

// readAll delivers answers until the connection is idle or ends.
func (u *upstream) readAll(conn *carrier.Conn, received *int64) error {
	reader := bufio.NewReader(conn)
	for {
		if err := conn.SetReadDeadline(time.Now().Add(u.f.idleTimeout)); err != nil {
			return err
		}
		message, err := readFrame(reader)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			if u.closeIdle() {
				return nil
			}
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		*received += int64(2 + len(message))
		u.deliver(message)
	}
}

func readFrame(reader *bufio.Reader) ([]byte, error) {
	prefix, err := reader.Peek(2) // consumes nothing when the deadline passes
	if err != nil {
		return nil, err
	}
	message := make([]byte, binary.BigEndian.Uint16(prefix))
	_, _ = reader.Discard(2)
	if _, err := io.ReadFull(reader, message); err != nil {
		// Within a message, a deadline means a broken connection, not an idle one.
		return nil, fmt.Errorf("a cut DNS message: %w", errors.Join(syscall.ECONNRESET, errors.New(err.Error())))
	}
	return message, nil
}

// deliver passes an answer to the client of the query.
func (u *upstream) deliver(message []byte) {
	asked, code, err := parseAnswer(message)
	if err != nil {
		return
	}
	id := binary.BigEndian.Uint16(message)
	u.mu.Lock()
	u.answered = time.Now()
	l := u.pending[id]
	if l != nil && !l.asked.matches(asked) {
		l = nil
	}
	if l != nil {
		delete(u.pending, id)
	}
	u.mu.Unlock()
	if l != nil {
		u.f.answer(l, message, asked, code)
	}
}

// expire removes a lookup. If the connection has had no answer since the lookup
// started, expire ends it: the next query gets a new one.
func (u *upstream) expire(l *lookup) {
	u.mu.Lock()
	var found bool
	for id, other := range u.pending {
		if other == l {
			delete(u.pending, id)
			found = true
			break
		}
	}
	stalled := found && u.answered.Before(l.began)
	u.mu.Unlock()
	if stalled {
		u.abort(errStalled)
	}
}

// abort ends the connection. The first cause is logged.
func (u *upstream) abort(cause error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	if u.cause == nil {
		u.cause = cause
	}
	u.cancel()
	if u.conn != nil {
		netx.Abort(u.conn)
	}
}

// closeIdle closes the connection for new lookups if none is unanswered, and reports
// whether it did.
func (u *upstream) closeIdle() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.pending) > 0 {
		return false
	}
	u.closed = true
	return true
}

// close closes the connection for new lookups. It returns the unanswered ones and the
// reason of the end: the cause of an abort, if there was one.
func (u *upstream) close(err error) ([]*lookup, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	if u.cause != nil {
		err = u.cause
	}
	left := make([]*lookup, 0, len(u.pending))
	for _, l := range u.pending {
		if err != nil && !retriable(err) {
			l.retried = true
		}
		left = append(left, l)
	}
	clear(u.pending)
	return left, err
}

// retriable reports whether a new connection may succeed: not if the proxy could not be
// reached or refused.
func retriable(err error) bool {
	status, _ := carrier.Outcome(err)
	return status == connlog.Reset || errors.Is(err, errStalled)
}
