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

// Config is that of the client and of the server.
type Config struct {
	Listen     netip.AddrPort `json:"listen"` // client: of redirected connections; server: of the client
	Server     netip.AddrPort `json:"server"` // client only
	Multipath  bool           `json:"multipath"`
	Device     string         `json:"device"`  // client only: the interface that the connection is bound to; "": the routes decide
	Private    bool           `json:"private"` // TLS 1.3 on the connection
	Congestion string         `json:"congestion"`
}

func (c Config) options() netx.Options {
	return netx.Options{Multipath: c.Multipath, Device: c.Device, Congestion: c.Congestion}
}

const (
	streamWindow = 4 << 20 // more than what fits on the links: no stream waits for credit
	longestWait  = time.Minute
	bufferSize   = 64 << 10
	headerSize   = 6 // of a stream: IPv4 address and port of the destination
)

// session is how both sides set yamux up: at its best, not as it comes.
func session() *yamux.Config {
	c := yamux.DefaultConfig()
	c.MaxStreamWindowSize = streamWindow
	// A ping every 30 s would send over an idle connection, which with tcp_slow_start_after_idle ends its window.
	c.EnableKeepAlive = false
	c.ConnectionWriteTimeout = longestWait // 10 s would end a session whose path is dead for a while
	c.LogOutput = io.Discard
	return c
}

// join relays between an application's connection and a stream until both directions have ended.
func join(conn *net.TCPConn, stream *yamux.Stream) {
	up := make(chan error, 1)
	go func() {
		_, err := io.CopyBuffer(onlyWriter{stream}, onlyReader{conn}, make([]byte, bufferSize))
		_ = stream.Close() // its own side
		up <- err
	}()
	_, err := io.CopyBuffer(onlyWriter{conn}, onlyReader{stream}, make([]byte, bufferSize))
	if err == nil {
		err = conn.CloseWrite()
	}
	if err != nil {
		netx.Abort(conn) // ends the other direction, too
		_ = stream.Close()
	}
	if errors.Join(err, <-up) != nil {
		netx.Abort(conn)
		return
	}
	_ = conn.Close()
}

// onlyReader and onlyWriter hide everything else, so that the given buffer is used.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)
