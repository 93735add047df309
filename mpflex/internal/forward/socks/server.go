package socks

import (
	"cmp"
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

// DefaultListen is the default address of a server. Only programs on the same machine
// can reach it.
var DefaultListen = netip.MustParseAddrPort("127.0.0.1:1080")

// ErrLimit reports that the maximum number of connections or associations is open.
var ErrLimit = errors.New("the limit of the SOCKS server is reached")

// Request is a client's request.
type Request struct {
	Source netip.AddrPort // the client's address of the TCP connection
	// Destination is the destination of a connection. For a UDP association, it is the
	// address from which the client will send, or all zeros if the client does not know
	// it.
	Destination Address
	User        string // "" without authentication
}

// Handler serves requests. Both functions run in a goroutine of the connection and must
// return soon after their context has ended.
type Handler struct {
	// Connect serves a CONNECT. It must call reply once, at once or when it knows
	// whether the destination can be reached. A code other than Succeeded ends the
	// connection. Bytes that the client sends, even before the reply, can be read from
	// conn. Most clients send them only after the reply: to send them with the request,
	// reply at once and wait briefly. No byte after the request was read from conn.
	// Connect closes or resets conn. If it does not, conn is reset when Connect
	// returns.
	Connect func(ctx context.Context, request Request, conn *net.TCPConn, reply func(Code) error)
	// Associate serves an open UDP association. The context ends with the association.
	// The association ends when Associate returns. nil: the command is not supported.
	Associate func(ctx context.Context, request Request, association *Association)
}

// Limits bounds the resources of clients. A zero field selects the default.
type Limits struct {
	Handshake    time.Duration // for the whole request to arrive; default 10 s
	Connections  int           // open connections, those of associations included; default 4096
	Associations int           // open associations; default 256
	Idle         time.Duration // time without a datagram in either direction; then an association ends; default 300 s
}

func (l Limits) withDefaults() Limits {
	l.Handshake = cmp.Or(l.Handshake, 10*time.Second)
	l.Connections = cmp.Or(l.Connections, 4096)
	l.Associations = cmp.Or(l.Associations, 256)
	l.Idle = cmp.Or(l.Idle, 300*time.Second)
	return l
}

// Counters count since the start of the server.
type Counters struct {
	Failed    atomic.Uint64 // connections without a valid request
	OverLimit atomic.Uint64 // connections and associations refused by a limit
	Fragments atomic.Uint64 // datagrams dropped: FRAG was not 0
	Malformed atomic.Uint64 // datagrams dropped: malformed header
	Foreign   atomic.Uint64 // datagrams dropped: not from the association's client
}

// Server serves SOCKS5. Do not change its exported fields, except Counters, once it
// serves.
type Server struct {
	Handler Handler
	// Users maps users to passwords. nil: no authentication.
	Users  map[string]string
	Limits Limits
	// Socket holds options of the associations' UDP sockets. Only the mark is used.
	Socket netx.Options
	// Refused, if set, is called for each client that was not served, with the reason.
	Refused func(source netip.AddrPort, reason error)
	// Failed, if set, returns a function that is called for each failure to accept.
	Failed func(*net.TCPListener) func(error)

	Counters Counters

	associations atomic.Int64
}

// Serve serves the clients of a listener until ctx ends. Then it closes the listener
// and waits for all handlers. Call it once.
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
	defer netx.Abort(conn) // no effect if it is closed
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

// handshake agrees on a method, authenticates the client, and reads its request. With
// an error, answer is the message for the client; nil: none.
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

// authenticate authenticates the client if there are Users. With an error, answer is
// the message for the client; nil: none.
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
			// The address of the carrying connection is of no use to a client, and is
			// unknown if the reply is sent at once.
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
	_ = reply(GeneralFailure) // no effect if the handler has replied
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

// openSocket opens the UDP socket of an association, on the address at which the client
// reached the server. It counts the association.
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
