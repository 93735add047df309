package socks

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"mplab/internal/netx"
)

// Reasons for which an association ends.
var (
	// ErrEnded: the client closed the TCP connection that the association
	// was asked for on.
	ErrEnded = errors.New("the client ended the association")
	// ErrIdle: no datagram in either direction for the idle time.
	ErrIdle = errors.New("the association was idle for too long")
)

// ErrNoClient: nothing has come from the client yet, so it is not known where
// datagrams for it go.
var ErrNoClient = errors.New("the client has not sent a datagram yet")

// maxHeader is the size of the longest header of a datagram.
const maxHeader = 3 + maxAddress

// Association carries datagrams between one client and whoever serves it.
type Association struct {
	server *Server
	ctx    context.Context // ends with the association
	socket *net.UDPConn
	stop   func() bool

	host netip.Addr // who may send
	// client is where the client sends from: known from the start if its
	// request said so, else from its first datagram. Its port is 0 before.
	client   atomic.Pointer[netip.AddrPort]
	heard    atomic.Bool // a datagram came from the client
	activity netx.Activity
	buffer   []byte
}

func newAssociation(ctx context.Context, server *Server, socket *net.UDPConn, request Request) *Association {
	a := &Association{
		server: server, ctx: ctx, socket: socket,
		host:   request.Source.Addr(),
		buffer: make([]byte, netx.MaxDatagram),
	}
	a.stop = context.AfterFunc(ctx, func() { _ = socket.Close() })
	// Many clients give their destination here by mistake. An address that
	// is not theirs is therefore not heeded, which RFC 1928 §6 permits.
	stated := request.Destination
	client := netip.AddrPortFrom(a.host, 0)
	if stated.IP == a.host || stated.IP.IsUnspecified() {
		client = netip.AddrPortFrom(a.host, stated.Port)
	}
	a.client.Store(&client)
	a.activity.Touch()
	_ = socket.SetReadDeadline(time.Now().Add(server.Limits.Idle)) // fails when closed; then so does the read
	return a
}

// close ends the association and returns when nothing of it is left.
func (a *Association) close() {
	a.stop()
	_ = a.socket.Close()
}

// Receive waits for the client's next datagram and returns it with its
// destination, which may be a domain. The datagram is good until the next call.
// Datagrams that are not the client's, fragments, and what cannot be understood
// are dropped and counted. The error is ErrEnded, ErrIdle, or the cause of the
// context's end. One goroutine at a time may call Receive.
func (a *Association) Receive() (datagram []byte, destination Address, err error) {
	for {
		n, source, err := a.socket.ReadFromUDPAddrPort(a.buffer)
		if err != nil {
			if err := a.failed(err); err != nil {
				return nil, Address{}, err
			}
			continue
		}
		source = netip.AddrPortFrom(source.Addr().Unmap(), source.Port())
		client := *a.client.Load()
		if source.Addr() != client.Addr() || client.Port() != 0 && source.Port() != client.Port() {
			a.server.Counters.Foreign.Add(1)
			continue
		}
		destination, datagram, err := parseDatagram(a.buffer[:n])
		switch {
		case errors.Is(err, ErrFragment):
			a.server.Counters.Fragments.Add(1)
			continue
		case err != nil:
			a.server.Counters.Malformed.Add(1)
			continue
		}
		if !a.heard.Load() {
			a.client.Store(&source)
			a.heard.Store(true)
		}
		a.activity.Touch()
		return datagram, destination, nil
	}
}

// failed returns the reason for which the association is over; nil if it is not.
func (a *Association) failed(err error) error {
	switch {
	case a.ctx.Err() != nil:
		return context.Cause(a.ctx)
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return err
	}
	left := a.activity.Left(a.server.Limits.Idle)
	if left <= 0 {
		return ErrIdle
	}
	return a.socket.SetReadDeadline(time.Now().Add(left))
}

// Send sends the client a datagram that came from source. It does not wait for
// the client. It returns ErrNoClient before the client's first datagram, and
// the error of the socket when the datagram cannot be sent (too large with its
// header, or the association has ended). It is safe for concurrent use.
func (a *Association) Send(datagram []byte, source netip.AddrPort) error {
	if !a.heard.Load() {
		return ErrNoClient
	}
	header := FromAddrPort(source)
	message := appendDatagram(make([]byte, 0, len(datagram)+maxHeader), header, datagram)
	if _, err := a.socket.WriteToUDPAddrPort(message, *a.client.Load()); err != nil {
		return err
	}
	a.activity.Touch()
	return nil
}
