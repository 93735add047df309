package identity

import (
	"container/list"
	"errors"
	"net"
	"sync"
)

// What is read at most of a stranger, and from there to the end of the
// handshake, in bytes. A ClientHello has about 1.6 kB and the rest of an agent's
// part 0.5 kB; what follows at once may be read along with it, some kB.
const (
	maxClientHello = 8 << 10
	maxHandshake   = 32 << 10
)

// errTalkative: the peer sends more than a handshake is made of.
var errTalkative = errors.New("more bytes than a handshake has")

// guard is a connection that reads no more than it must and says nothing until
// the peer is admitted. It is used by one goroutine until done.
type guard struct {
	net.Conn
	left     int  // bytes that may still be read
	admitted bool // the peer may be spoken to
	done     bool // the handshake is through
}

// admit lets the peer be spoken to, and it may send the rest of a handshake.
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

// Write implements net.Conn. Alerts to a stranger are swallowed.
func (g *guard) Write(b []byte) (int, error) {
	if !g.admitted {
		return len(b), nil
	}
	return g.Conn.Write(b)
}

// strangers are the connections that have not shown yet that they know a secret,
// a bounded number. An agent's ClientHello arrives with its first packet, so it
// is a stranger for a moment only; who holds a place to keep others out loses it
// to the next that comes.
type strangers struct {
	limit int

	mu    sync.Mutex // guards what follows
	queue *list.List // of net.Conn, oldest in front
}

func newStrangers(limit int) *strangers { return &strangers{limit: limit, queue: list.New()} }

// enter takes in a connection and closes the oldest if they are too many. The
// function that it returns takes the connection out again; it may be called more
// than once.
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
		s.queue.Remove(place) // does nothing when it is out
	}
}
