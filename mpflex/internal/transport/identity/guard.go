package identity

import (
	"container/list"
	"errors"
	"net"
	"sync"
)

// Bounds of the bytes read from a stranger, and from then until the end of the
// handshake. A ClientHello has about 1.6 kB and the rest of an agent's part 0.5 kB. Up
// to some kB of the following messages may be read with it.
const (
	maxClientHello = 8 << 10
	maxHandshake   = 32 << 10
)

// errTalkative reports a peer that sends more bytes than a handshake has.
var errTalkative = errors.New("more bytes than a handshake has")

// guard is a connection that bounds the bytes read, and writes none before the peer is
// admitted. Only one goroutine may use it until done.
type guard struct {
	net.Conn
	left     int  // bytes that may still be read
	admitted bool // bytes may be written to the peer
	done     bool // the handshake has ended
}

// admit allows writing, and reading the rest of a handshake.
func (g *guard) admit() { g.admitted, g.left = true, maxHandshake }

// Read implements net.Conn.
func (g *guard) Read(b []byte) (int, error) {
	if g.done {
		return g.Conn.Read(b)
	}
	if g.left == 0 {
		return 0, errTalkative
	}
	n, err := g.Conn.Read(b[:min(len(b), g.left)])
	g.left -= n
	return n, err
}

// Write implements net.Conn. It drops alerts to a peer that is not admitted.
func (g *guard) Write(b []byte) (int, error) {
	if !g.admitted {
		return len(b), nil
	}
	return g.Conn.Write(b)
}

// strangers holds the connections that have not yet proved that they know a secret.
// Their number is bounded. An agent's ClientHello arrives with its first packet, so an
// agent is a stranger only briefly. A peer that occupies places to block others loses
// them to newer connections.
type strangers struct {
	limit int

	mu    sync.Mutex // guards the fields below
	queue *list.List // of net.Conn, the oldest first
}

func newStrangers(limit int) *strangers { return &strangers{limit: limit, queue: list.New()} }

// enter adds a connection. If there are too many, it closes the oldest. The returned
// function removes the connection and may be called more than once.
func (s *strangers) enter(conn net.Conn) (leave func()) {
	s.mu.Lock()
	var oldest net.Conn
	if s.queue.Len() >= s.limit {
		oldest = s.queue.Remove(s.queue.Front()).(net.Conn)
	}
	place := s.queue.PushBack(conn)
	s.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close()
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.queue.Remove(place) // no effect if it was removed before
	}
}
