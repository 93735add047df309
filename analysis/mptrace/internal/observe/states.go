package observe

import "mplab/analysis/mptrace/internal/mptcp"

// States maps connections to an observer's state. For recently used
// connections, a lookup is only a comparison.
type States[T any] struct {
	all    map[*mptcp.Conn]*T
	last   state[T]
	recent [64]state[T] // by the number of the connection
}

type state[T any] struct {
	of *mptcp.Conn
	at *T
}

// Get returns the state of a connection, or nil.
func (s *States[T]) Get(c *mptcp.Conn) *T {
	if s.last.of == c {
		return s.last.at
	}
	return s.find(c)
}

func (s *States[T]) find(c *mptcp.Conn) *T {
	r := &s.recent[uint32(c.ID)%uint32(len(s.recent))]
	if r.of != c {
		*r = state[T]{c, s.all[c]}
	}
	s.last = *r
	return r.at
}

// Put sets the state of a connection.
func (s *States[T]) Put(c *mptcp.Conn, at *T) {
	if s.all == nil {
		s.all = make(map[*mptcp.Conn]*T)
	}
	s.all[c] = at
	s.remember(state[T]{c, at})
}

// Take removes the state of a connection and returns it, or nil.
func (s *States[T]) Take(c *mptcp.Conn) *T {
	at := s.Get(c)
	delete(s.all, c)
	s.remember(state[T]{c, nil})
	return at
}

func (s *States[T]) remember(is state[T]) {
	s.last = is
	s.recent[uint32(is.of.ID)%uint32(len(s.recent))] = is
}
