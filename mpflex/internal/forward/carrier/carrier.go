package carrier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"mplab/internal/netx"
	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/forward/relay"
	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/wire"
)

const (
	// dialTimeout bounds the way to the proxy, and at the proxy the way to
	// the destination.
	dialTimeout = 10 * time.Second
	// statusTimeout bounds the wait for the proxy's answer: its own dial and
	// some round trips.
	statusTimeout = dialTimeout + 5*time.Second
	// flushTimeout bounds how long the record of a stream waits for its last bytes.
	flushTimeout = 30 * time.Second
	// maxEarly is how many of the application's first bytes may leave in one
	// write with the hello.
	maxEarly = 16 << 10
)

// Errors of opening.
var (
	// ErrProxy: the proxy cannot be reached; it wraps the reason.
	ErrProxy = errors.New("the proxy cannot be reached")
	// ErrNoAnswer: the proxy closed the connection instead of answering.
	ErrNoAnswer = errors.New("the proxy closed the connection without an answer (another secret, or its connection limit)")
)

// StatusError is an authentic answer of the proxy other than OK.
type StatusError struct{ Status wire.Status }

// Error implements error.
func (e *StatusError) Error() string { return e.Status.String() }

// Dialer opens carrying connections to one proxy. Its fields are not changed
// once it is in use.
type Dialer struct {
	Proxy   netip.AddrPort
	Options netx.Options
	Secret  []byte
	Streams Streams // when set, carrying connections are streams of a session

	// Devices, when set, are interfaces that new connections are bound to in
	// turn, instead of that of Options.
	Devices []string

	turn  atomic.Uint64 // counts the connections with Devices
	clock wire.Clock
}

// Streams is a session with the proxy, for as long as there are programs.
type Streams interface {
	// Open makes a stream, also while there is no path for it.
	Open() (*session.Stream, error)
}

// Request is what a carrying connection is opened for.
type Request struct {
	Command     wire.Command
	Source      netip.AddrPort // the application's address; for the proxy's log
	Destination netip.AddrPort
	First       []byte       // leaves with the hello, before all bytes of the application
	Early       *net.TCPConn // when set, bytes that can be read from it at once leave with the hello
	Label       byte         // of the scheme of a stream

	// Prepare, when set, is given the stream before anything is written to it.
	Prepare func(*session.Stream) error
}

// Conn is an open carrying connection. Its answer must be read with Answer
// before anything else is read.
type Conn struct {
	relay.Stream
	Early int       // how many bytes of the request's First and Early left with the hello
	Sent  time.Time // when the hello left

	// TCP is the connection, with its subflows; nil for a stream of a session.
	TCP    *net.TCPConn
	device string // that it is bound to; "": none
	watch  *netx.Watch
	stream *session.Stream // nil: none

	dialer *Dialer
	nonce  [wire.NonceSize]byte
}

// Open connects to the proxy and sends the hello, without waiting for the
// answer: it costs no round trip beyond the connection's own.
func (d *Dialer) Open(ctx context.Context, request Request) (*Conn, error) {
	if d.Streams != nil {
		return d.openStream(request)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	tcp, device, err := d.dial(ctx)
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return nil, relay.ErrShutdown
		}
		return nil, fmt.Errorf("%w: %w", ErrProxy, err)
	}
	hello := wire.NewHello(request.Command, request.Source, request.Destination)
	hello.Time = d.clock.Now()
	message := hello.Append(make([]byte, 0, 1<<10), d.Secret)
	conn := &Conn{Stream: tcp, TCP: tcp, device: device, watch: netx.NewWatch(tcp, d.Options.Multipath), dialer: d, nonce: hello.Nonce}
	message, conn.Early = request.appendEarly(message)
	conn.Sent = time.Now()
	if _, err := tcp.Write(message); err != nil {
		netx.Abort(tcp)
		return nil, fmt.Errorf("%w: sending the hello: %w", ErrProxy, err)
	}
	return conn, nil
}

// dial connects to the proxy, over the device whose turn it is when there are
// several. One whose network is lost is passed over. It returns the device.
func (d *Dialer) dial(ctx context.Context) (conn *net.TCPConn, device string, err error) {
	options := d.Options
	if len(d.Devices) == 0 {
		conn, err = options.Dial(ctx, d.Proxy)
		return conn, options.Device, err
	}
	first := d.turn.Add(1) - 1
	for i := range uint64(len(d.Devices)) {
		options.Device = d.Devices[(first+i)%uint64(len(d.Devices))]
		if conn, err = options.Dial(ctx, d.Proxy); !lost(err) {
			break
		}
	}
	return conn, options.Device, err
}

// lost says whether an error is that of a device without a network.
func lost(err error) bool {
	return errors.Is(err, netx.ErrDevice) || errors.Is(err, syscall.ENETUNREACH) ||
		errors.Is(err, syscall.ENETDOWN) || errors.Is(err, syscall.EADDRNOTAVAIL)
}

// OpenDirect connects to a destination past the proxy. There is no answer to
// wait for.
func OpenDirect(ctx context.Context, options netx.Options, destination netip.AddrPort) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	tcp, err := options.Dial(ctx, destination)
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return nil, relay.ErrShutdown
		}
		return nil, err
	}
	return &Conn{Stream: tcp, TCP: tcp, watch: netx.NewWatch(tcp, options.Multipath), Sent: time.Now()}, nil
}

// appendEarly appends the bytes that go first, and those of the application that
// are there already.
func (r *Request) appendEarly(message []byte) ([]byte, int) {
	message = append(message, r.First...)
	if r.Early == nil {
		return message, len(r.First)
	}
	early := make([]byte, maxEarly)
	n := netx.ReadNow(r.Early, early)
	return append(message, early[:n]...), len(r.First) + n
}

// openStream opens a stream of the session: its first message says what it is
// for.
func (d *Dialer) openStream(request Request) (*Conn, error) {
	stream, err := d.Streams.Open()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProxy, err)
	}
	if request.Prepare != nil {
		if err := request.Prepare(stream); err != nil {
			netx.Abort(stream)
			return nil, err
		}
	}
	open := wire.Open{Command: request.Command, Label: request.Label, Source: request.Source, Destination: request.Destination}
	conn := &Conn{Stream: stream, stream: stream, dialer: d, Sent: time.Now()}
	message, n := request.appendEarly(open.Append(make([]byte, 0, 1<<10)))
	conn.Early = n
	if _, err := stream.Write(message); err != nil {
		netx.Abort(stream)
		return nil, fmt.Errorf("%w: %w", ErrProxy, err)
	}
	return conn, nil
}

// status reads the proxy's answer. On a stream it is a byte: the path has
// proved who it comes from.
func (c *Conn) status() (wire.Status, error) {
	if c.stream == nil {
		return wire.ReadStatus(c.TCP, c.dialer.Secret, c.nonce)
	}
	var b [1]byte
	_, err := io.ReadFull(c.stream, b[:])
	return wire.Status(b[0]), err
}

// streamTimeout bounds the wait for the answer on a stream, which may wait for a
// path first.
const streamTimeout = statusTimeout + 60*time.Second

// Answer waits for the proxy's answer. It returns nil when the destination is
// connected. A *wire.SkewError says that the clocks differed; the dialer's next
// connections take that into account.
func (c *Conn) Answer() error {
	if c.dialer == nil {
		return nil
	}
	timeout := statusTimeout
	if c.stream != nil {
		timeout = streamTimeout
	}
	if err := c.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	status, err := c.status()
	var skew *wire.SkewError
	if errors.As(err, &skew) {
		c.dialer.clock.Learn(skew)
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return ErrNoAnswer
	case err != nil:
		return err
	case status != wire.OK:
		return &StatusError{status}
	}
	c.Sample()
	return c.SetReadDeadline(time.Time{})
}

// Sample looks at the subflows of the connection, now and then.
func (c *Conn) Sample() {
	if c.watch != nil {
		c.watch.Sample()
	}
}

// Describe fills in what a record says of the carrying connection.
func (c *Conn) Describe(record *connlog.Connection) {
	if c.stream != nil {
		DescribeStream(c.stream, record)
		return
	}
	if c.device != "" {
		record.Device = c.device
	}
	record.Local.AddrPort = netx.AddrPort(c.LocalAddr())
	record.Remote.AddrPort = netx.AddrPort(c.RemoteAddr())
	record.Multipath, record.Fallback, record.Subflows = c.watch.State()
}

// DescribeStream fills in what a record says of a stream that was closed: how
// much each path carried of it. It waits until its last bytes have arrived.
func DescribeStream(stream *session.Stream, record *connlog.Connection) {
	if stream.CloseWrite() == nil { // until all has arrived the paths go on carrying it
		stream.Flush(flushTimeout)
	}
	status := stream.Status()
	for _, p := range status.Paths {
		record.Paths = append(record.Paths, connlog.Path{Interface: p.Name, BytesOut: p.Out, BytesIn: p.In, CopiesOut: p.Copies})
	}
	record.Stream, record.Subflows, record.WaitedMS = stream.ID(), len(record.Paths), &status.WaitedMS
}

// Outcome is how the log calls the end of a carried connection.
func Outcome(err error) (connlog.Status, string) {
	if err == nil {
		return connlog.Closed, ""
	}
	return outcome(err), err.Error()
}

func outcome(err error) connlog.Status {
	var answer *StatusError
	switch {
	case errors.Is(err, relay.ErrShutdown):
		return connlog.Shutdown
	case errors.As(err, &answer):
		switch answer.Status {
		case wire.Unreachable:
			return connlog.Unreachable
		case wire.Timeout:
			return connlog.Timeout
		}
		return connlog.Refused
	case errors.Is(err, ErrNoAnswer), errors.Is(err, wire.ErrMAC), errors.Is(err, wire.ErrFormat), errors.Is(err, wire.ErrVersion):
		return connlog.Refused
	case errors.As(err, new(*wire.SkewError)):
		return connlog.Refused
	case errors.Is(err, relay.ErrIdle), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return connlog.Timeout
	case errors.Is(err, ErrProxy):
		return connlog.Unreachable
	}
	return connlog.Reset
}
