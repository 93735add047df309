package socks

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mplab/internal/netx"
	"mplab/mpflex/internal/forward/accept"
)

// DefaultListen is where a server listens unless told otherwise: only programs
// of the same machine reach it.
var DefaultListen = netip.MustParseAddrPort("127.0.0.1:1080")

// ErrLimit: as many connections or associations are open as the limits allow.
var ErrLimit = errors.New("the limit of the SOCKS server is reached")

// Request is what a client asks for.
type Request struct {
	Source netip.AddrPort // the client's end of the TCP connection
	// Destination is where to connect to. Of a UDP association it is where
	// the client says it will send from; all zeros if it does not know.
	Destination Address
	User        string // "" without authentication
}

// Handler does what clients ask for. Both functions run in a goroutine of the
// connection and return soon after their context has ended.
type Handler struct {
	// Connect serves a CONNECT. It calls reply once, at once or when it
	// knows whether the destination can be reached; what the client sends
	// first, be it before the reply, is there to be read from conn. Most
	// clients send it only after the reply; who wants it with the request
	// replies at once and waits a moment for it. A code other than
	// Succeeded ends the connection. Connect closes or resets
	// conn itself, of which not a byte behind the request was read; one
	// that it leaves open is reset when it returns.
	Connect func(ctx context.Context, request Request, conn *net.TCPConn, reply func(Code) error)
	// Associate serves a UDP association, which is open already. The context
	// ends with the association, and the association when Associate returns.
	// Nil: the command is not supported.
	Associate func(ctx context.Context, request Request, association *Association)
}

// Limits bound what clients can use. A zero field is its default.
type Limits struct {
	Handshake    time.Duration // until the whole request is there; default 10 s
	Connections  int           // at one time, those of associations included; default 4096
	Associations int           // at one time; default 256
	Idle         time.Duration // of an association without a datagram in either direction; default 300 s
}

func (l Limits) withDefaults() Limits {
	setDefault(&l.Handshake, 10*time.Second)
	setDefault(&l.Connections, 4096)
	setDefault(&l.Associations, 256)
	setDefault(&l.Idle, 300*time.Second)
	return l
}

func setDefault[T int | time.Duration](value *T, otherwise T) {
	if *value == 0 {
		*value = otherwise
	}
}

// Counters count from the start of the server.
type Counters struct {
	Failed    atomic.Uint64 // connections without a request that could be served
	OverLimit atomic.Uint64 // connections and associations refused by a limit
	Fragments atomic.Uint64 // datagrams dropped: FRAG was not 0
	Malformed atomic.Uint64 // datagrams dropped: no header that can be understood
	Foreign   atomic.Uint64 // datagrams dropped: not from the association's client
}

// Server serves SOCKS5. Its exported fields but Counters are not changed once
// it serves.
type Server struct {
	Handler Handler
	// Users are the passwords of the users. Nil: nobody needs one.
	Users  map[string]string
	Limits Limits
	// Socket are options of the associations' UDP sockets; only the mark counts.
	Socket netx.Options
	// Refused, when set, is told of each client that was not served, and why.
	Refused func(source netip.AddrPort, reason error)
	// Failed, when set, returns what is told of each failure to accept.
	Failed func(*net.TCPListener) func(error)

	Counters Counters

	associations atomic.Int64
}

// Serve serves the clients of a listener until ctx ends, then closes it and
// returns when all handlers have returned. It is called once.
func (s *Server) Serve(ctx context.Context, listener *net.TCPListener) {
	s.Limits = s.Limits.withDefaults()
	group := accept.NewGroup(s.Limits.Connections)
	group.Failed = s.Failed
	group.Serve(ctx, listener, func(conn *net.TCPConn) { s.serve(ctx, conn) }, s.overLimit)
	group.Wait(math.MaxInt64)
}

func (s *Server) overLimit(conn *net.TCPConn) {
	s.Counters.OverLimit.Add(1)
	s.refuse(netx.AddrPort(conn.RemoteAddr()), fmt.Errorf("%w: %d connections", ErrLimit, s.Limits.Connections))
}

func (s *Server) refuse(source netip.AddrPort, reason error) {
	if s.Refused != nil {
		s.Refused(source, reason)
	}
}

// serve serves one connection to its end.
func (s *Server) serve(ctx context.Context, conn *net.TCPConn) {
	defer netx.Abort(conn) // does nothing to one that is closed
	request := Request{Source: netx.AddrPort(conn.RemoteAddr())}
	command, answer, err := s.handshake(ctx, conn, &request)
	switch {
	case err != nil:
	case command == commandConnect:
		s.connect(ctx, conn, request)
		return
	case command == commandAssociate && s.Handler.Associate != nil:
		s.associate(ctx, conn, request)
		return
	default:
		err = fmt.Errorf("%w: %d", ErrCommand, command)
		answer = appendMessage(nil, byte(CommandNotSupported), Address{})
	}
	s.Counters.Failed.Add(1)
	s.refuse(request.Source, err)
	if answer != nil {
		netx.SeeOff(ctx, conn, answer)
	}
}

// handshake agrees on a method, authenticates the client, and reads its
// request. With an error, answer is what the client is told; nil: nothing.
func (s *Server) handshake(ctx context.Context, conn *net.TCPConn, request *Request) (what command, answer []byte, err error) {
	if err := conn.SetDeadline(time.Now().Add(s.Limits.Handshake)); err != nil {
		return 0, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()

	user, answer, err := s.authenticate(conn)
	if err != nil {
		return 0, answer, err
	}
	second, destination, err := readMessage(conn)
	switch {
	case errors.Is(err, ErrAddressType):
		return 0, appendMessage(nil, byte(AddressTypeNotSupported), Address{}), err
	case errors.Is(err, ErrFormat), errors.Is(err, ErrVersion):
		return 0, appendMessage(nil, byte(GeneralFailure), Address{}), err
	case err != nil:
		return 0, nil, err
	}
	request.User, request.Destination = user, destination
	if !stop() {
		return 0, nil, context.Cause(ctx)
	}
	return command(second), nil, conn.SetDeadline(time.Time{})
}

// authenticate lets the client prove who it is, if that is needed. With an
// error, answer is what the client is told; nil: nothing.
func (s *Server) authenticate(conn *net.TCPConn) (user string, answer []byte, err error) {
	methods, err := readGreeting(conn)
	if err != nil {
		return "", nil, err
	}
	method := byte(methodNone)
	if s.Users != nil {
		method = methodPassword
	}
	if !slices.Contains(methods, method) {
		return "", []byte{version, methodRefused}, fmt.Errorf("%w: %v", ErrMethod, methods)
	}
	if _, err := conn.Write([]byte{version, method}); err != nil {
		return "", nil, err
	}
	if method == methodNone {
		return "", nil, nil
	}
	user, password, err := readCredentials(conn)
	if err != nil {
		return "", nil, err
	}
	want, known := s.Users[user]
	same := subtle.ConstantTimeCompare([]byte(password), []byte(want)) == 1
	if !known || !same {
		return "", []byte{authVersion, 1}, fmt.Errorf("%w: %q", ErrUser, user)
	}
	_, err = conn.Write([]byte{authVersion, 0})
	return user, nil, err
}

// connect serves a CONNECT.
func (s *Server) connect(ctx context.Context, conn *net.TCPConn, request Request) {
	var once sync.Once
	reply := func(code Code) error {
		err := fmt.Errorf("socks: %q was not sent: the request is answered already", code)
		once.Do(func() {
			// What the carrying connection is bound to means nothing to a
			// client, and is not known yet when the reply is sent at once.
			message := appendMessage(nil, byte(code), Address{})
			err = nil
			if code == Succeeded {
				_, err = conn.Write(message)
			} else {
				netx.SeeOff(ctx, conn, message)
			}
		})
		return err
	}
	s.Handler.Connect(ctx, request, conn, reply)
	_ = reply(GeneralFailure) // does nothing when the handler has replied
}

// associate serves a UDP ASSOCIATE.
func (s *Server) associate(ctx context.Context, conn *net.TCPConn, request Request) {
	socket, err := s.openSocket(ctx, conn)
	if err != nil {
		s.refuse(request.Source, err)
		netx.SeeOff(ctx, conn, appendMessage(nil, byte(GeneralFailure), Address{}))
		return
	}
	defer s.associations.Add(-1)
	ctx, end := context.WithCancelCause(ctx)
	association := newAssociation(ctx, s, socket, request)
	bound := FromAddrPort(netx.AddrPort(socket.LocalAddr()))
	var control sync.WaitGroup
	if _, err := conn.Write(appendMessage(nil, byte(Succeeded), bound)); err == nil {
		control.Go(func() {
			_, _ = io.Copy(io.Discard, conn)
			end(ErrEnded)
		})
		s.Handler.Associate(ctx, request, association)
	}
	end(net.ErrClosed)
	_ = conn.Close()
	control.Wait()
	association.close()
}

// openSocket opens the UDP socket of an association, on the address at which
// the client reached the server; the association counts from then on.
func (s *Server) openSocket(ctx context.Context, conn *net.TCPConn) (*net.UDPConn, error) {
	if s.associations.Add(1) > int64(s.Limits.Associations) {
		s.associations.Add(-1)
		s.Counters.OverLimit.Add(1)
		return nil, fmt.Errorf("%w: %d associations", ErrLimit, s.Limits.Associations)
	}
	local := netx.AddrPort(conn.LocalAddr()).Addr()
	socket, err := s.Socket.ListenUDP(ctx, netip.AddrPortFrom(local, 0))
	if err != nil {
		s.associations.Add(-1)
		s.Counters.Failed.Add(1)
		return nil, err
	}
	return socket, nil
}
