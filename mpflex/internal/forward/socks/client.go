package socks

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"mplab/internal/netx"
)

// Credentials are a user name and a password of at most 255 bytes each.
type Credentials struct{ User, Password string }

// Tunnel is the client's side of a UDP association.
type Tunnel struct {
	control *net.TCPConn
	socket  *net.UDPConn
	watch   sync.WaitGroup
}

// OpenTunnel requests a UDP association from a server. credentials may be nil. It
// returns an error when ctx ends first.
func OpenTunnel(ctx context.Context, server netip.AddrPort, credentials *Credentials) (*Tunnel, error) {
	var dialer net.Dialer
	dialed, err := dialer.DialContext(ctx, "tcp", server.String())
	if err != nil {
		return nil, fmt.Errorf("SOCKS server %s: %w", server, err)
	}
	control := dialed.(*net.TCPConn)
	stop := context.AfterFunc(ctx, func() { _ = control.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	bound, err := askTunnel(control, credentials)
	if err != nil {
		_ = control.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("SOCKS server %s: %w", server, err)
	}
	if bound.IP.IsUnspecified() {
		bound.IP = server.Addr()
	}
	socket, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(bound.AddrPort()))
	if err != nil {
		_ = control.Close()
		return nil, fmt.Errorf("SOCKS server %s: %w", server, err)
	}
	t := &Tunnel{control: control, socket: socket}
	t.watch.Go(func() {
		_, _ = io.Copy(io.Discard, control)
		_ = socket.Close()
	})
	return t, nil
}

// askTunnel performs the handshake and returns the address for datagrams.
func askTunnel(control *net.TCPConn, credentials *Credentials) (Address, error) {
	methods := []byte{methodNone}
	if credentials != nil {
		methods = append(methods, methodPassword)
	}
	if _, err := control.Write(appendGreeting(nil, methods...)); err != nil {
		return Address{}, err
	}
	var choice [2]byte
	if _, err := io.ReadFull(control, choice[:]); err != nil {
		return Address{}, err
	}
	switch {
	case choice[0] != version:
		return Address{}, fmt.Errorf("%w: the first byte is %d", ErrVersion, choice[0])
	case choice[1] == methodPassword && credentials != nil:
		if _, err := control.Write(appendCredentials(nil, credentials.User, credentials.Password)); err != nil {
			return Address{}, err
		}
		var status [2]byte
		if _, err := io.ReadFull(control, status[:]); err != nil {
			return Address{}, err
		}
		if status[1] != 0 {
			return Address{}, ErrUser
		}
	case choice[1] != methodNone:
		return Address{}, ErrMethod
	}
	if _, err := control.Write(appendMessage(nil, byte(commandAssociate), Address{})); err != nil {
		return Address{}, err
	}
	code, bound, err := readMessage(control)
	switch {
	case err != nil:
		return Address{}, err
	case Code(code) != Succeeded:
		return Address{}, fmt.Errorf("the server's answer: %s", Code(code))
	case !bound.IP.IsValid():
		return Address{}, fmt.Errorf("%w: datagrams are to go to %s, which is no IP address", ErrFormat, bound)
	}
	return bound, nil
}

// Local returns the local address of the datagrams.
func (t *Tunnel) Local() netip.AddrPort { return netx.AddrPort(t.socket.LocalAddr()) }

// Send sends a datagram to a destination.
func (t *Tunnel) Send(datagram []byte, destination Address) error {
	if len(destination.Domain) > maxDomain {
		return fmt.Errorf("%w: a domain of %d bytes", ErrFormat, len(destination.Domain))
	}
	_, err := t.socket.Write(appendDatagram(make([]byte, 0, maxHeader+len(datagram)), destination, datagram))
	return err
}

// Receive waits for the next datagram and returns it, as a part of the buffer, with its
// source. Malformed datagrams and fragments are errors (ErrFormat, ErrFragment) after
// which Receive can be called again. After the server has ended the association, the
// error is net.ErrClosed.
func (t *Tunnel) Receive(buffer []byte) (datagram []byte, source Address, err error) {
	n, err := t.socket.Read(buffer)
	if err != nil {
		return nil, Address{}, err
	}
	source, datagram, err = parseDatagram(buffer[:n])
	return datagram, source, err
}

// SetReadDeadline sets the deadline of Receive, as in net.Conn.
func (t *Tunnel) SetReadDeadline(deadline time.Time) error { return t.socket.SetReadDeadline(deadline) }

// Close ends the association.
func (t *Tunnel) Close() error {
	err := t.control.Close()
	t.watch.Wait()
	return err
}
