package muxed

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/hashicorp/yamux"

	"mplab/internal/netx"
)

// Config is the configuration of the client or of the server.
type Config struct {
	Listen     netip.AddrPort `json:"listen"` // client: for redirected connections; server: for clients
	Server     netip.AddrPort `json:"server"` // client only
	Multipath  bool           `json:"multipath"`
	Device     string         `json:"device"`  // client only: the interface to bind to; "": by routing
	Private    bool           `json:"private"` // TLS 1.3 on the connection
	Congestion string         `json:"congestion"`
}

func (c Config) options() netx.Options {
	return netx.Options{Multipath: c.Multipath, Device: c.Device, Congestion: c.Congestion}
}

const (
	streamWindow = 4 << 20 // more than the links hold: no stream waits for credit
	longestWait  = time.Minute
	bufferSize   = 64 << 10
	headerSize   = 6 // of a stream: IPv4 address and port of the destination
)

// session returns the yamux configuration of both sides, tuned for performance.
func session() *yamux.Config {
	c := yamux.DefaultConfig()
	c.MaxStreamWindowSize = streamWindow
	// A ping every 30 s would use an idle connection, and with tcp_slow_start_after_idle reset its window.
	c.EnableKeepAlive = false
	c.ConnectionWriteTimeout = longestWait // the default of 10 s would end a session whose path is dead for a while
	c.LogOutput = io.Discard
	return c
}

// join relays between an application's connection and a stream until both directions have ended.
func join(conn *net.TCPConn, stream *yamux.Stream) {
	up := make(chan error, 1)
	go func() {
		_, err := io.CopyBuffer(onlyWriter{stream}, onlyReader{conn}, make([]byte, bufferSize))
		_ = stream.Close() // closes only the sending side
		up <- err
	}()
	_, err := io.CopyBuffer(onlyWriter{conn}, onlyReader{stream}, make([]byte, bufferSize))
	if err == nil {
		err = conn.CloseWrite()
	}
	if err != nil {
		netx.Abort(conn) // also ends the other direction
		_ = stream.Close()
	}
	if errors.Join(err, <-up) != nil {
		netx.Abort(conn)
		return
	}
	_ = conn.Close()
}

// onlyReader and onlyWriter hide all other methods, so that io.CopyBuffer uses the given buffer.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)
