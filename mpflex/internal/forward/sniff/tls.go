package sniff

import "mplab/mpflex/internal/names"

// Constants of TLS records, handshake messages and extensions (RFC 8446 §5.1, §4,
// §4.1.2; RFC 6066 §3). Older versions of TLS have the same format.
const (
	recordHandshake     = 22
	recordHeader        = 5
	maxFragment         = 1 << 14
	messageClientHello  = 1
	extensionServerName = 0
	nameTypeHost        = 0
)

// readTLS parses a ClientHello. It may be spread over several records and be
// incomplete.
func readTLS(data []byte) Result {
	hello, broken := handshake(data)
	s := input{rest: hello, missing: needMore}
	if broken { // no further handshake record follows
		s.missing = none
	}
	return clientHello(&s)
}

// handshake joins the fragments of the handshake records at the start. broken means
// that other data follows them.
func handshake(data []byte) (message []byte, broken bool) {
	first := true
	for len(data) > 0 {
		header := data[:min(len(data), recordHeader)]
		if header[0] != recordHandshake || len(header) > 1 && header[1] != 3 {
			return message, true
		}
		if len(header) < recordHeader {
			break
		}
		size := int(header[3])<<8 | int(header[4])
		if size == 0 || size > maxFragment { // RFC 8446 §5.1: not empty
			return message, true
		}
		fragment := data[recordHeader:min(len(data), recordHeader+size)]
		data = data[recordHeader+len(fragment):]
		if first { // often the only one: no copy
			message, first = fragment[:len(fragment):len(fragment)], false
		} else {
			message = append(message, fragment...)
		}
	}
	return message, false
}

// clientHello finds the server name.
func clientHello(s *input) Result {
	kind, ok := s.number(1)
	if !ok {
		return s.end()
	}
	if kind != messageClientHello {
		return none
	}
	s.enter(3)       // the message
	s.skip(2 + 32)   // legacy_version, random
	s.skipVector(1)  // legacy_session_id
	s.skipVector(2)  // cipher_suites
	s.skipVector(1)  // legacy_compression_methods
	if !s.enter(2) { // extensions; fails if there are none
		return s.end()
	}
	for {
		kind, ok := s.number(2)
		if !ok {
			return s.end()
		}
		if kind != extensionServerName {
			if !s.skipVector(2) {
				return s.end()
			}
			continue
		}
		s.enter(2) // extension_data
		return serverName(s)
	}
}

// serverName parses the list of RFC 6066 §3, which has one name.
func serverName(s *input) Result {
	s.enter(2) // server_name_list
	kind, ok := s.number(1)
	if ok && kind != nameTypeHost {
		return none
	}
	host, ok := s.vector(2)
	if !ok {
		return s.end()
	}
	if name, ok := names.Normalize(string(host)); ok {
		return Result{Named, name, SNI}
	}
	return none
}

// input reads nested structures that may be incomplete. After a failed read all further
// reads fail.
type input struct {
	rest    []byte
	left    int  // bytes until the end of the innermost structure, if inside
	inside  bool // a structure was entered
	broken  bool // the structure ends too early: no name can follow
	stopped bool
	missing Result // result if bytes are missing
}

// end returns the result after a failed read.
func (s *input) end() Result {
	if s.broken {
		return none
	}
	return s.missing
}

// take returns the next n bytes.
func (s *input) take(n int) ([]byte, bool) {
	switch {
	case s.stopped:
		return nil, false
	case s.inside && n > s.left:
		s.broken, s.stopped = true, true
		return nil, false
	case n > len(s.rest):
		s.stopped = true
		return nil, false
	}
	taken := s.rest[:n]
	s.rest = s.rest[n:]
	s.left -= n
	return taken, true
}

// number reads an integer of size bytes.
func (s *input) number(size int) (int, bool) {
	value := 0
	digits, ok := s.take(size)
	for _, digit := range digits {
		value = value<<8 | int(digit)
	}
	return value, ok
}

// enter starts a structure that has a length of size bytes before it. It must end
// within the structure around it.
func (s *input) enter(size int) bool {
	length, ok := s.number(size)
	if !ok {
		return false
	}
	if s.inside && length > s.left {
		s.broken, s.stopped = true, true
		return false
	}
	s.left, s.inside = length, true
	return true
}

func (s *input) skip(n int) bool {
	_, ok := s.take(n)
	return ok
}

// vector returns the bytes that follow a length of size bytes.
func (s *input) vector(size int) ([]byte, bool) {
	length, ok := s.number(size)
	if !ok {
		return nil, false
	}
	return s.take(length)
}

func (s *input) skipVector(size int) bool {
	_, ok := s.vector(size)
	return ok
}
