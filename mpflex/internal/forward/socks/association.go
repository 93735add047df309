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

// The reasons why an association ends.
var (
	// ErrEnded reports that the client closed the TCP connection of the association.
	ErrEnded = errors.New("the client ended the association")
	// ErrIdle reports that there was no datagram in either direction for the idle time.
	ErrIdle = errors.New("the association was idle for too long")
)

// ErrNoClient reports that the client has sent nothing, so its UDP address is unknown.
var ErrNoClient = errors.New("the client has not sent a datagram yet")

// maxHeader is the maximum size of a datagram's header in bytes.
const maxHeader = 3 + maxAddress

// Association carries datagrams between one client and its handler.
type Association struct {
	server *Server
	ctx    context.Context // ends with the association
	socket *net.UDPConn
	stop   func() bool

	host netip.Addr // address that may send
	// client is the client's UDP address. The request may state its port. Otherwise the
	// port is 0 until the first datagram.
	client   atomic.Pointer[netip.AddrPort]
	heard    atomic.Bool // the client has sent a datagram
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
	// Many clients put their destination here by mistake. So an address that is not the
	// client's is ignored, as RFC 1928 §6 permits.
	stated := request.Destination
	client := netip.AddrPortFrom(a.host, 0)
	if stated.IP == a.host || stated.IP.IsUnspecified() {
		client = netip.AddrPortFrom(a.host, stated.Port)
	}
	a.client.Store(&client)
	a.activity.Touch()
	_ = socket.SetReadDeadline(time.Now().Add(server.Limits.Idle)) // fails if the socket is closed; then so does the read
	return a
}

// close ends the association and closes its socket.
func (a *Association) close() {
	a.stop()
	_ = a.socket.Close()
}

// Receive waits for the client's next datagram and returns it with its destination,
// which may be a domain. The datagram is valid until the next call. Receive drops and
// counts datagrams of others, fragments and malformed datagrams. The error is ErrEnded,
// ErrIdle, or the cause of the context's end. Only one goroutine at a time may call
// Receive.
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

// failed returns the reason of the association's end, or nil if it continues.
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

// Send sends the client a datagram that came from source. It does not block. It returns
// ErrNoClient before the client's first datagram. It returns the socket's error if the
// datagram with its header is too large or the association has ended. It is safe for
// concurrent use.
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
