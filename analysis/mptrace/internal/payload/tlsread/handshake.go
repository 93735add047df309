package tlsread

import "mplab/internal/tlshello"

// handshake processes the content of a handshake record.
func (s *Session) handshake(dir int, plain []byte) error {
	h := &s.halves[dir]
	if !s.listens(dir) {
		return nil
	}
	if len(h.text)+len(plain) > helloMax {
		return ErrMalformed
	}
	h.text = append(h.text, plain...)
	for m := message(h.text); m != nil; m = message(h.text) {
		h.text = h.text[len(m):]
		if err := s.message(dir, m); err != nil {
			return err
		}
	}
	if len(h.text) == 0 || !s.listens(dir) {
		h.text = nil
	}
	return nil
}

// listens reports whether the handshake messages of a direction are still
// needed.
func (s *Session) listens(dir int) bool {
	return !s.chosen || s.early == earlyAsked && dir == down || s.server.version == tls12 && s.halves[dir].opener != nil
}

func (s *Session) message(dir int, m []byte) error {
	encrypted := s.halves[dir].opener != nil
	switch kind := m[0]; {
	case dir == up && kind == tlshello.ClientHello && !encrypted:
		return s.clientHello(m)
	case dir == down && kind == messageServerHello && !encrypted:
		return s.serverHello(m)
	case dir == down && kind == messageEncryptedExtensions && s.early == earlyAsked:
		s.early = earlyRejected
		if acceptsEarlyData(m) {
			s.early = earlyAccepted
			if s.secrets.ClientEarly != nil {
				s.halves[up].waiting = append([][]byte{s.secrets.ClientEarly}, s.halves[up].waiting...)
			}
		}
	case encrypted && s.server.version == tls12 && (kind == messageHelloRequest || kind == tlshello.ClientHello):
		return ErrUnsupported
	}
	return nil
}

func (s *Session) clientHello(m []byte) error {
	hello, _ := tlshello.Parse(m)
	if !hello.HasRandom {
		return ErrMalformed
	}
	if s.hasHello { // answer to a HelloRetryRequest
		return nil
	}
	s.hello, s.hasHello = hello, true
	if hello.EarlyData {
		s.early = earlyAsked
	}
	if s.secrets = s.keys.Find(hello.Random); s.secrets == nil {
		return ErrNoKeys
	}
	return nil
}

func (s *Session) serverHello(m []byte) error {
	hello, ok := parseServerHello(m)
	if !ok {
		return ErrMalformed
	}
	if hello.retry {
		if s.early == earlyAsked {
			s.early = earlyRejected
		}
		return nil
	}
	if s.suite, ok = find(hello.version, hello.suite); !ok || hello.compressed || hello.version < tls12 {
		return ErrUnsupported
	}
	s.server, s.chosen = hello, true
	if hello.version == tls13 {
		return s.secrets13()
	}
	s.early = earlyNone
	if s.secrets.Master == nil {
		return ErrNoKeys
	}
	openers, err := s.suite.openers12(s.secrets.Master, s.hello.Random[:], hello.random[:], hello.encryptThenMAC)
	if err != nil {
		return ErrKeys
	}
	s.halves[up].pending, s.halves[down].pending = openers[up], openers[down]
	return nil
}

// secrets13 queues the secrets of both directions in the order of their use.
func (s *Session) secrets13() error {
	if s.secrets.Client == nil || s.secrets.Server == nil {
		return ErrNoKeys
	}
	for dir, pair := range [2][2][]byte{{s.secrets.ClientHandshake, s.secrets.Client}, {s.secrets.ServerHandshake, s.secrets.Server}} {
		for _, secret := range pair {
			if secret != nil {
				s.halves[dir].waiting = append(s.halves[dir].waiting, secret)
			}
		}
	}
	return nil
}
