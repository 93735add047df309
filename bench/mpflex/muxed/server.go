package muxed

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"sync"

	"github.com/hashicorp/yamux"

	"mplab/internal/netx"
)

// Server is the part on the proxy. It serves any number of clients.
type Server struct {
	config      Config
	certificate tls.Certificate // for connections with TLS
	listener    *net.TCPListener
	wait        sync.WaitGroup
}

// NewServer creates the certificate and the listener.
func NewServer(c Config) (*Server, error) {
	certificate, err := certify()
	if err != nil {
		return nil, err
	}
	listener, err := c.options().Listen(c.Listen)
	if err != nil {
		return nil, err
	}
	return &Server{config: c, certificate: certificate, listener: listener}, nil
}

// Listening returns the address of the listener.
func (s *Server) Listening() netip.AddrPort { return netx.AddrPort(s.listener.Addr()) }

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) {
	defer s.wait.Wait()
	stop := context.AfterFunc(ctx, func() { _ = s.listener.Close() })
	defer stop()
	for {
		conn, err := s.listener.AcceptTCP()
		if err != nil {
			return // listener closed
		}
		s.wait.Go(func() {
			defer netx.Abort(conn)
			private, err := s.config.secureServer(ctx, conn, s.certificate)
			if err != nil {
				return
			}
			if session, err := yamux.Server(private, session()); err == nil {
				s.serve(ctx, session)
			}
		})
	}
}

// serve serves the streams of one client until its session ends.
func (s *Server) serve(ctx context.Context, session *yamux.Session) {
	defer context.AfterFunc(ctx, func() { _ = session.Close() })()
	for {
		stream, err := session.AcceptStream()
		if err != nil {
			return
		}
		s.wait.Go(func() {
			if err := s.connect(ctx, stream); err != nil {
				_ = stream.Close()
			}
		})
	}
}

// connect relays one stream to its destination over plain TCP.
func (s *Server) connect(ctx context.Context, stream *yamux.Stream) error {
	var header [headerSize]byte
	if _, err := io.ReadFull(stream, header[:]); err != nil {
		return err
	}
	var destination netip.AddrPort
	if err := destination.UnmarshalBinary(header[:]); err != nil {
		return err
	}
	dialing, cancel := context.WithTimeout(ctx, longestWait)
	defer cancel()
	conn, err := netx.Options{Congestion: s.config.Congestion}.Dial(dialing, destination)
	if err != nil {
		return err
	}
	end := context.AfterFunc(ctx, func() { netx.Abort(conn) })
	defer end()
	join(conn, stream)
	return nil
}
