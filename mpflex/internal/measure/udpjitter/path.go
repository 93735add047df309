package udpjitter

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"

	"mplab/mpflex/internal/forward/socks"
)

// path is a connection to the echo server. Receive fails with net.ErrClosed when no
// more datagrams can arrive.
type path interface {
	Send(datagram []byte) error
	Receive(buffer []byte) ([]byte, error)
	Close() error
}

// openPath opens a path to the target, through a SOCKS5 server if there is one.
func openPath(ctx context.Context, o Options) (path, error) {
	if o.path != nil {
		return o.path, nil
	}
	if o.Socks.IsValid() {
		tunnel, err := socks.OpenTunnel(ctx, o.Socks, nil)
		if err != nil {
			return nil, err
		}
		return &tunnelled{tunnel, o.Target}, nil
	}
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(o.Target))
	if err != nil {
		return nil, err
	}
	return &plain{conn}, nil
}

// plain is a connected UDP socket.
type plain struct{ *net.UDPConn }

func (p *plain) Send(datagram []byte) error {
	_, err := p.Write(datagram)
	if errors.Is(err, syscall.ECONNREFUSED) { // reports an earlier datagram; this one was not sent
		_, err = p.Write(datagram)
	}
	return err
}

func (p *plain) Receive(buffer []byte) ([]byte, error) {
	n, err := p.Read(buffer)
	return buffer[:n], err
}

// tunnelled is an association with a SOCKS5 server.
type tunnelled struct {
	*socks.Tunnel
	target netip.AddrPort
}

func (t *tunnelled) Send(datagram []byte) error {
	return t.Tunnel.Send(datagram, socks.FromAddrPort(t.target))
}

func (t *tunnelled) Receive(buffer []byte) ([]byte, error) {
	datagram, source, err := t.Tunnel.Receive(buffer)
	if err == nil && source.AddrPort() != t.target {
		return nil, errMessage
	}
	return datagram, err
}
