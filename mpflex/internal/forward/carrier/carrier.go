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
	// dialTimeout bounds the time to connect to the proxy, and at the proxy the time to
	// connect to the destination.
	dialTimeout = 10 * time.Second
	// statusTimeout bounds the wait for the proxy's answer: the proxy's dial and some
	// round trips.
	statusTimeout = dialTimeout + 5*time.Second
	// flushTimeout bounds how long the record of a stream waits for the last bytes to
	// arrive.
	flushTimeout = 30 * time.Second
	// maxEarly bounds the application's first bytes that leave in one write with the
	// hello.
	maxEarly = 16 << 10
)

// Errors of opening.
var (
	// ErrProxy reports that the proxy cannot be reached. It wraps the reason.
	ErrProxy = errors.New("the proxy cannot be reached")
	// ErrNoAnswer reports that the proxy closed the connection without an answer.
	ErrNoAnswer = errors.New("the proxy closed the connection without an answer (another secret, or its connection limit)")
)

// StatusError is an authentic answer of the proxy other than OK.
type StatusError struct{ Status wire.Status }

// Error implements error.
func (e *StatusError) Error() string { return e.Status.String() }

// Dialer opens carrying connections to one proxy. Do not change its fields during use.
type Dialer struct {
	Proxy   netip.AddrPort
	Options netx.Options
	Secret  []byte
	Streams Streams // if set, carrying connections are streams of a session

	// Devices, when set, are interfaces that new connections are bound to in
	// turn, instead of that of Options.
	Devices []string

	turn  atomic.Uint64 // counts the connections with Devices
	clock wire.Clock
}

// Streams is the current session with the proxy.
type Streams interface {
	// Open opens a stream, even if there is no path.
	Open() (*session.Stream, error)
}

// Request describes a carrying connection to open.
type Request struct {
	Command     wire.Command
	Source      netip.AddrPort // application's address, for the proxy's log
	Destination netip.AddrPort
	First       []byte       // sent with the hello, before the application's bytes
	Early       *net.TCPConn // if set, bytes that it has already received leave with the hello
	Label       byte         // of the stream's scheme

	// Prepare, if set, is called with the stream before anything is written to it.
	Prepare func(*session.Stream) error
}

// Conn is an open carrying connection. Call Answer before reading anything else.
type Conn struct {
	relay.Stream
	Early int       // bytes of the request's First and Early that left with the hello
	Sent  time.Time // when the hello was sent

	// TCP is the connection with its subflows. nil: the connection is a stream of a
	// session.
	TCP    *net.TCPConn
	device string // that it is bound to; "": none
	watch  *netx.Watch
	stream *session.Stream // nil: not a stream

	dialer *Dialer
	nonce  [wire.NonceSize]byte
}

// Open connects to the proxy and sends the hello without waiting for the answer. It
// costs no round trip beyond that of the connection. It returns relay.ErrShutdown if
// ctx was cancelled, otherwise ErrProxy.
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

// dial connects to the proxy and returns the device. With several devices it takes the next
// one, and skips devices whose network is down.
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

// OpenDirect connects to a destination without the proxy. Answer then returns at once.
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

// appendEarly appends First and the bytes that have arrived from the application. It
// returns how many these are.
func (r *Request) appendEarly(message []byte) ([]byte, int) {
	message = append(message, r.First...)
	if r.Early == nil {
		return message, len(r.First)
	}
	early := make([]byte, maxEarly)
	n := netx.ReadNow(r.Early, early)
	return append(message, early[:n]...), len(r.First) + n
}

// openStream opens a stream of the session and sends the open message.
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

// status reads the proxy's answer. On a stream it is one byte: the path is
// authenticated.
func (c *Conn) status() (wire.Status, error) {
	if c.stream == nil {
		return wire.ReadStatus(c.TCP, c.dialer.Secret, c.nonce)
	}
	var b [1]byte
	_, err := io.ReadFull(c.stream, b[:])
	return wire.Status(b[0]), err
}

// streamTimeout bounds the wait for the answer on a stream, which may first wait for a
// path.
const streamTimeout = statusTimeout + 60*time.Second

// Answer waits for the proxy's answer and returns nil if the destination is connected.
// A *wire.SkewError means that the clocks differ. The dialer's next connections use the
// proxy's time.
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

// Sample records the current subflows. Call it repeatedly.
func (c *Conn) Sample() {
	if c.watch != nil {
		c.watch.Sample()
	}
}

// Describe fills in the record's fields about the carrying connection.
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

// DescribeStream fills in the record's fields about a stream, such as the bytes that
// each path carried. It ends the sending direction and waits until its last bytes have
// arrived.
func DescribeStream(stream *session.Stream, record *connlog.Connection) {
	if stream.CloseWrite() == nil { // paths still carry bytes until all have arrived
		stream.Flush(flushTimeout)
	}
	status := stream.Status()
	for _, p := range status.Paths {
		record.Paths = append(record.Paths, connlog.Path{Interface: p.Name, BytesOut: p.Out, BytesIn: p.In, CopiesOut: p.Copies})
	}
	record.Stream, record.Subflows, record.WaitedMS = stream.ID(), len(record.Paths), &status.WaitedMS
}

// Outcome returns the status and the error text of an ended connection for the log.
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
