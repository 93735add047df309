package session

import "mplab/mpflex/frame"

// datagram is one that waits to be sent.
type datagram struct {
	association uint32
	payload     []byte
}

// mostDatagrams bounds how many of them wait: later ones are dropped, as on
// any full link.
const mostDatagrams = 1024

// OnDatagram sets who takes received datagrams. It is called by the reader of
// a path and must not block; the payload is valid during the call.
func (s *Session) OnDatagram(take func(association uint32, payload []byte)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.datagram = take
}

// SendDatagram sends a datagram, without any promise: it says whether it waits
// to be sent.
func (s *Session) SendDatagram(association uint32, payload []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || len(s.paths) == 0 || len(s.datagrams) >= mostDatagrams || len(payload) == 0 || len(payload) > frame.MaxPayload {
		return false
	}
	s.datagrams = append(s.datagrams, datagram{association, append([]byte(nil), payload...)})
	s.wake()
	return true
}
