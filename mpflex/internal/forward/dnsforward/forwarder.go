package dnsforward

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"mplab/internal/jsonlog"
	"mplab/internal/netx"
	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/forward/carrier"
	"mplab/mpflex/internal/names"
)

const (
	// queryTimeout is the time after which the client gets SERVFAIL.
	queryTimeout = 5 * time.Second
	// idleTimeout is how long the carrying connection is kept without a query (RFC 7766
	// §6.2.3).
	idleTimeout = 30 * time.Second
	// maxOutstanding bounds the unanswered lookups. Further ones fail at once.
	maxOutstanding = 1024
)

// Forwarder answers the queries of one UDP socket and those of Resolve.
type Forwarder struct {
	// Learn, if set, gets each answer of the server to a query. Set it before Run. It
	// must not keep the message.
	Learn func(message []byte)
	// Decide, if set, chooses for each lookup how to reach the server. Set it before
	// Run.
	Decide func() Way

	socket *net.UDPConn
	dialer *carrier.Dialer
	server netip.AddrPort
	log    *jsonlog.Log
	record func(src netip.AddrPort) connlog.Connection

	queryTimeout, idleTimeout time.Duration

	running context.Context // until Run ends
	end     context.CancelFunc

	slots chan struct{} // one per unanswered lookup
	hosts *names.Hosts  // resolved by Resolve

	mu      sync.Mutex // guards the fields below
	current *upstream  // nil until the first query
	closed  bool       // Run has ended
	wait    sync.WaitGroup
}

// Way is how the server is reached. Lookups with equal ways share a connection.
type Way struct {
	Rule, Scheme, Transport string // for the record of the connection; Transport "" means the agent's
	Refused                 bool   // do not ask the server: the client gets REFUSED

	// Open opens the connection. nil: the dialer does.
	Open func(context.Context, carrier.Request) (*carrier.Conn, error)
}

// same reports whether lookups may share a connection.
func (w Way) same(other Way) bool {
	return w.Rule == other.Rule && w.Scheme == other.Scheme && w.Transport == other.Transport
}

// lookup is an unanswered query.
type lookup struct {
	reply   func(message []byte)
	query   []byte // as the client sent it
	asked   question
	udpSize int
	began   time.Time
	retried bool // already sent again on a new connection
	way     Way
	up      *upstream // last connection that it was sent on; guarded by the forwarder's lock
	once    sync.Once
	timer   *time.Timer
}

// New returns a forwarder, which then owns the socket. If socket is nil, only Resolve
// is served. record starts the log record of a carrying connection.
func New(socket *net.UDPConn, dialer *carrier.Dialer, server netip.AddrPort, log *jsonlog.Log,
	record func(src netip.AddrPort) connlog.Connection,
) *Forwarder {
	running, end := context.WithCancel(context.Background())
	return &Forwarder{
		running: running, end: end, socket: socket, dialer: dialer, server: server, log: log, record: record,
		queryTimeout: queryTimeout, idleTimeout: idleTimeout,
		slots: make(chan struct{}, maxOutstanding), hosts: names.NewHosts(maxHosts),
	}
}

// Addr returns the address of the socket, or the zero AddrPort.
func (f *Forwarder) Addr() netip.AddrPort {
	if f.socket == nil {
		return netip.AddrPort{}
	}
	return netx.AddrPort(f.socket.LocalAddr())
}

// Run answers queries until ctx ends. Call it once.
func (f *Forwarder) Run(ctx context.Context) {
	stop := context.AfterFunc(ctx, f.end)
	defer stop()
	if f.socket != nil {
		f.receiveAll(f.running)
	}
	<-f.running.Done()
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.wait.Wait()
}

// receiveAll starts a lookup for each query that arrives.
func (f *Forwarder) receiveAll(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { _ = f.socket.Close() })
	defer stop()
	buffer := make([]byte, 64<<10)
	for ctx.Err() == nil {
		n, client, err := f.socket.ReadFromUDPAddrPort(buffer)
		if err != nil {
			if ctx.Err() == nil { // an ICMP error for an earlier answer
				time.Sleep(time.Millisecond)
			}
			continue
		}
		f.receive(ctx, append([]byte(nil), buffer[:n]...), func(message []byte) {
			_, _ = f.socket.WriteToUDPAddrPort(message, client) // if the answer is lost, the client repeats the query
		})
	}
}

// receive starts the lookup of one query.
func (f *Forwarder) receive(ctx context.Context, query []byte, reply func(message []byte)) {
	asked, udpSize, err := parseQuery(query)
	if err != nil {
		if len(query) >= headerSize && query[2]&0x80 == 0 {
			reply(failure(query, headerSize, dnsmessage.RCodeFormatError))
		}
		return
	}
	l := &lookup{reply: reply, query: query, asked: asked, udpSize: udpSize, began: time.Now()}
	if f.Decide != nil {
		if l.way = f.Decide(); l.way.Refused {
			reply(failure(query, asked.end, dnsmessage.RCodeRefused))
			f.write(l, dnsmessage.RCodeRefused)
			return
		}
	}
	select {
	case f.slots <- struct{}{}:
	default:
		reply(failure(query, asked.end, dnsmessage.RCodeServerFailure))
		f.write(l, dnsmessage.RCodeServerFailure)
		return
	}
	l.timer = time.AfterFunc(f.queryTimeout, func() { f.expire(l) })
	f.ask(ctx, l)
}

// ask sends a lookup on the open connection. It opens a new one if there is none, or if
// the lookup has another way.
func (f *Forwarder) ask(ctx context.Context, l *lookup) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		f.fail(l)
		return
	}
	if f.current == nil || !f.current.way.same(l.way) || !f.current.add(l) {
		f.current = newUpstream(ctx, f, l.way)
		f.current.add(l)
		up := f.current
		f.wait.Go(func() { up.run(ctx) })
	}
	l.up = f.current
}

// expire ends a lookup that was not answered in time.
func (f *Forwarder) expire(l *lookup) {
	f.mu.Lock()
	up := l.up
	f.mu.Unlock()
	if up != nil {
		up.expire(l)
	}
	f.fail(l)
}

// fail answers SERVFAIL.
func (f *Forwarder) fail(l *lookup) {
	f.finish(l, failure(l.query, l.asked.end, dnsmessage.RCodeServerFailure), dnsmessage.RCodeServerFailure)
}

// answer passes the server's answer to the client.
func (f *Forwarder) answer(l *lookup, message []byte, asked question, code dnsmessage.RCode) {
	copy(message, l.query[:2])
	if f.Learn != nil {
		f.Learn(message)
	}
	if len(message) > l.udpSize {
		message = truncated(message, asked.end)
	}
	f.finish(l, message, code)
}

// finish answers and logs a lookup. Only the first call has an effect.
func (f *Forwarder) finish(l *lookup, message []byte, code dnsmessage.RCode) {
	l.once.Do(func() {
		l.timer.Stop()
		f.write(l, code)
		l.reply(message)
		<-f.slots
	})
}

func (f *Forwarder) write(l *lookup, code dnsmessage.RCode) {
	f.log.Write(connlog.Lookup{
		Event: "dns", T: jsonlog.Unix(l.began), Name: l.asked.name, Type: typeName(l.asked.kind),
		RCode: rcodeName(code), DurationS: jsonlog.Since(l.began),
	})
}

// frame returns a message with this id in the format of DNS over TCP (RFC 1035 §4.2.2).
func frame(message []byte, id uint16) []byte {
	framed := make([]byte, 2, 2+len(message))
	binary.BigEndian.PutUint16(framed, uint16(len(message)))
	framed = append(framed, message...)
	binary.BigEndian.PutUint16(framed[2:], id)
	return framed
}
