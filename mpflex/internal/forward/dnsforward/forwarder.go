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
	// queryTimeout is after what time the client is told SERVFAIL.
	queryTimeout = 5 * time.Second
	// idleTimeout is how long the carrying connection is kept without a
	// query (RFC 7766 §6.2.3).
	idleTimeout = 30 * time.Second
	// maxOutstanding bounds the lookups under way; further ones fail at once.
	maxOutstanding = 1024
)

// Forwarder answers the queries that arrive on one UDP socket, and those of the
// program itself.
type Forwarder struct {
	// Learn, when set, is given each answer of the server that a client gets.
	// It is set before Run, and must not keep the message.
	Learn func(message []byte)
	// Decide, when set, says for each lookup how the server is asked. It is
	// set before Run.
	Decide func() Way

	socket *net.UDPConn
	dialer *carrier.Dialer
	server netip.AddrPort
	log    *jsonlog.Log
	record func(src netip.AddrPort) connlog.Connection

	queryTimeout, idleTimeout time.Duration

	running context.Context // until Run ends
	end     context.CancelFunc

	slots chan struct{} // one for each lookup under way
	hosts *names.Hosts  // that the program itself asked for

	mu      sync.Mutex // guards what follows
	current *upstream  // nil until the first query
	closed  bool       // Run has ended
	wait    sync.WaitGroup
}

// Way is how the server is asked. Lookups with equal ways share a connection.
type Way struct {
	Rule, Scheme, Transport string // for the record of the connection; "" for the transport of all others
	Refused                 bool   // not at all: the client is told REFUSED

	// Open opens the connection; nil: by the dialer.
	Open func(context.Context, carrier.Request) (*carrier.Conn, error)
}

// same says whether lookups may share a connection.
func (w Way) same(other Way) bool {
	return w.Rule == other.Rule && w.Scheme == other.Scheme && w.Transport == other.Transport
}

// lookup is one query under way.
type lookup struct {
	reply   func(message []byte)
	query   []byte // as the client sent it
	asked   question
	udpSize int
	began   time.Time
	retried bool // sent once more on a new connection already
	way     Way
	up      *upstream // that it was last given to; guarded by the forwarder's lock
	once    sync.Once
	timer   *time.Timer
}

// New returns a forwarder; it owns the socket. Without one, nil, it serves
// Resolve alone. record begins the log record of a carrying connection.
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

// Addr returns the address of the socket; the zero AddrPort when there is none.
func (f *Forwarder) Addr() netip.AddrPort {
	if f.socket == nil {
		return netip.AddrPort{}
	}
	return netx.AddrPort(f.socket.LocalAddr())
}

// Run answers queries until ctx ends. It is called once.
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

// receiveAll begins the lookups of the queries that arrive.
func (f *Forwarder) receiveAll(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { _ = f.socket.Close() })
	defer stop()
	buffer := make([]byte, 64<<10)
	for ctx.Err() == nil {
		n, client, err := f.socket.ReadFromUDPAddrPort(buffer)
		if err != nil {
			if ctx.Err() == nil { // an ICMP error of an earlier answer
				time.Sleep(time.Millisecond)
			}
			continue
		}
		f.receive(ctx, append([]byte(nil), buffer[:n]...), func(message []byte) {
			_, _ = f.socket.WriteToUDPAddrPort(message, client) // a lost answer is asked for again
		})
	}
}

// receive begins the lookup of one query.
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

// ask hands a lookup to the open connection, or to a new one; a new one, too,
// when the server is to be asked in another way than before.
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

// fail tells the client SERVFAIL.
func (f *Forwarder) fail(l *lookup) {
	f.finish(l, failure(l.query, l.asked.end, dnsmessage.RCodeServerFailure), dnsmessage.RCodeServerFailure)
}

// answer gives the client the server's answer.
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

// finish answers and logs a lookup, the first time it is called for it.
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

// frame is a message as DNS over TCP sends it (RFC 1035 §4.2.2), with this id.
func frame(message []byte, id uint16) []byte {
	framed := make([]byte, 2, 2+len(message))
	binary.BigEndian.PutUint16(framed, uint16(len(message)))
	framed = append(framed, message...)
	binary.BigEndian.PutUint16(framed[2:], id)
	return framed
}
