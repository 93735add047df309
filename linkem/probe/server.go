package probe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"sync"
	"time"

	"mplab/linkem/internal/exit"
)

// Limits of a client of the probe server.
const (
	mostSessions     = 64
	sessionIdle      = 30 * time.Second // idle time after which a session is forgotten
	mostSessionBytes = 256 << 20        // IP bytes that the server sends in one session
	mostBlastTime    = 10 * time.Second
	fewestBlastBits  = 1_000
	mostBlastBits    = 2_000_000_000
	endRepeats       = 5 // number of end messages, because a full queue may drop some
	endPause         = 60 * time.Millisecond
)

// Reasons of kindRefused.
const (
	refusedBusy   = 1 // too many sessions
	refusedBudget = 2 // the session has used mostSessionBytes
	refusedRun    = 3 // a blast with invalid parameters
)

// refusals maps reasons to texts.
var refusals = map[uint64]string{
	refusedBusy:   "it has too many sessions",
	refusedBudget: "the session has spent its bytes",
	refusedRun:    "the rate or the duration is out of bounds",
}

// session is the state of one client.
type session struct {
	addr    netip.AddrPort
	seen    time.Time
	spent   int64              // IP bytes sent or reserved
	downRun uint32             // latest run
	stop    context.CancelFunc // ends the running blast; nil: none is running
	upRun   uint32
	up      []sample
}

// server answers probes. It can serve several clients concurrently.
type server struct {
	socket *socket
	blasts sync.WaitGroup

	mu       sync.Mutex
	sessions map[token]*session // with their content guarded by mu
}

// Serve answers probes on a UDP address until ctx ends. It calls ready with the address when it is listening.
func Serve(ctx context.Context, listen string, ready func(addr net.Addr)) error {
	addr, err := net.ResolveUDPAddr("udp", listen)
	if err != nil {
		return exit.With(exit.Config, fmt.Errorf("--listen %s: %w", listen, err))
	}
	conn, err := net.ListenUDP("udp", addr)
	if err != nil {
		return fmt.Errorf("probe server: %w", err)
	}
	defer func() { _ = conn.Close() }()
	socket, err := newSocket(conn)
	if err != nil {
		return err
	}
	server := &server{socket: socket, sessions: map[token]*session{}}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	ready(conn.LocalAddr())
	err = server.serve()
	server.blasts.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("probe server: %w", err)
}

// serve answers probes until the socket is closed.
func (s *server) serve() error {
	for {
		in, err := s.socket.receive()
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		if err != nil {
			continue // ICMP error of a client that has gone
		}
		s.handle(in)
	}
}

func (s *server) handle(in received) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.kind == kindHello {
		s.open(in)
		return
	}
	session := s.sessions[in.token]
	if session == nil || session.addr != in.from {
		return
	}
	session.seen = time.Now()
	switch in.kind {
	case kindEcho:
		hold := max(time.Now().UnixNano()-in.at, 0)
		s.answer(session, in, message{kind: kindEchoed, first: uint64(hold)})
	case kindUpData:
		session.count(in)
	case kindUpAsk:
		report := message{kind: kindUpReport}
		if in.sequence == session.upRun {
			rate, _ := deliveryRate(session.up)
			report.first, report.second = uint64(math.Round(rate)), uint64(len(session.up))
		}
		s.answer(session, in, report)
	case kindDownStart:
		s.start(session, in)
	}
}

// open creates a session. The answer is not larger than the request.
func (s *server) open(in received) {
	for token, session := range s.sessions {
		if session.stop == nil && time.Since(session.seen) > sessionIdle {
			delete(s.sessions, token)
		}
	}
	if len(s.sessions) >= mostSessions {
		s.send(in.from, message{kind: kindRefused, token: in.token, first: refusedBusy})
		return
	}
	token := newToken()
	s.sessions[token] = &session{addr: in.from, seen: time.Now()}
	welcome := message{kind: kindWelcome, token: token, sequence: in.sequence}
	welcome.first, welcome.second = in.token.halves()
	s.send(in.from, welcome)
}

// count records an arrival of an upload.
func (session *session) count(in received) {
	if in.sequence != session.upRun {
		session.upRun, session.up = in.sequence, session.up[:0]
	}
	if len(session.up) < mostSamples {
		session.up = append(session.up, sample{in.at, in.bytes})
	}
}

// answer sends a header-only message in a session, with token and sequence number of the request.
func (s *server) answer(session *session, in received, m message) {
	m.token, m.sequence = in.token, in.sequence
	if session.spent >= mostSessionBytes {
		m = message{kind: kindRefused, token: in.token, sequence: in.sequence, first: refusedBudget}
	}
	session.spent += int64(headBytes + overheadTo(in.from))
	s.send(in.from, m)
}

func (s *server) send(to netip.AddrPort, m message) {
	var packet [headBytes]byte
	m.put(packet[:])
	_, _ = s.socket.WriteToUDPAddrPort(packet[:], to) // a lost answer is requested again
}

// start starts a blast to the client, once per run. The answer to a duplicate request is the running blast. A request for
// a later run ends the running blast; the client repeats the request until the data arrive.
func (s *server) start(session *session, in received) {
	if in.sequence <= session.downRun {
		return
	}
	if session.stop != nil {
		session.stop()
		return
	}
	rate, duration := float64(in.first), time.Duration(in.second>>32)*time.Millisecond
	size := int(in.second & math.MaxUint32)
	promised := int64(rate*duration.Seconds()/8) + largestMessage
	refused := message{kind: kindRefused}
	switch {
	case rate < fewestBlastBits, rate > mostBlastBits, duration > mostBlastTime, size < smallestBlast, size > largestMessage:
		refused.first = refusedRun
	case session.spent+promised > mostSessionBytes:
		refused.first = refusedBudget
	default:
		ctx, stop := context.WithCancel(context.Background())
		session.downRun, session.stop = in.sequence, stop
		session.spent += promised
		s.blasts.Go(func() { s.blast(ctx, session, in, rate, size, duration) })
		return
	}
	s.answer(session, in, refused)
}

// blast sends the data and end messages of a run, until ctx ends.
func (s *server) blast(ctx context.Context, session *session, in received, rate float64, size int, duration time.Duration) {
	packet := padded(message{kind: kindDownData, token: in.token, sequence: in.sequence}, size, overheadTo(in.from))
	sent, _ := blast(rate, size, duration, func() error {
		_, err := s.socket.WriteToUDPAddrPort(packet, in.from)
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		return ctx.Err() // a packet that the system refuses counts as lost
	})
	end := message{kind: kindDownEnd, token: in.token, sequence: in.sequence, first: uint64(sent)}
	for n := 0; n < endRepeats && ctx.Err() == nil; n++ {
		s.send(in.from, end)
		time.Sleep(endPause)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	session.stop()
	session.stop, session.seen = nil, time.Now()
}
