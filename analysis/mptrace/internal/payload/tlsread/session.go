package tlsread

import (
	"encoding/binary"
	"errors"

	"mplab/analysis/mptrace/internal/payload/stream"
	"mplab/analysis/mptrace/internal/payload/tlskeys"
)

// The reasons why a direction cannot be decrypted to its end.
var (
	ErrHole        = errors.New("tls: part of a record was not captured")
	ErrMalformed   = errors.New("tls: not a record or message of TLS")
	ErrUnsupported = errors.New("tls: version, cipher suite, compression or renegotiation that is not decrypted")
	ErrKeys        = errors.New("tls: the secrets of the key log do not open a record")
	ErrNoKeys      = errors.New("tls: the key log does not have this connection")
)

// Record types.
const (
	recordChangeCipherSpec = 20
	recordAlert            = 21
	recordHandshake        = 22
	recordApplication      = 23
	recordHeartbeat        = 24
)

const (
	headerSize = 5
	recordMax  = 16384 + 2048 // RFC 5246 §6.2.3
	helloMax   = 64 << 10
	// earlyMax bounds how many bytes of rejected early data are passed over.
	earlyMax = 1 << 20

	up, down = 0, 1
)

// Session is one TLS connection.
type Session struct {
	keys    *tlskeys.Log
	scratch *[]byte

	hello    ClientHello
	hasHello bool
	secrets  *tlskeys.Secrets
	server   serverHello
	chosen   bool // the server's hello is known
	suite    suite
	early    earlyState
	halves   [2]half
	runs     []stream.Run // of the record at hand
}

// earlyState is what is known of the client's early data.
type earlyState uint8

const (
	earlyNone earlyState = iota
	earlyAsked
	earlyAccepted
	earlyRejected
)

// half is one direction.
type half struct {
	opener  opener // nil: records are not encrypted
	seq     uint64
	waiting [][]byte // TLS 1.3: the traffic secrets that come after the opener's
	secret  []byte   // TLS 1.3: of application data, when the opener uses it
	pending opener   // TLS 1.2: used behind ChangeCipherSpec
	text    []byte   // handshake messages that are not whole
	passed  int      // bytes of records that no key opened
	closed  bool
}

// New returns a session whose records will be looked for in a key log. Scratch
// may be shared between sessions.
func New(keys *tlskeys.Log, scratch *[]byte) *Session { return &Session{keys: keys, scratch: scratch} }

// Hello returns the client's hello once it was read.
func (s *Session) Hello() (ClientHello, bool) { return s.hello, s.hasHello }

// Closed says whether a direction said that it is complete (close_notify).
func (s *Session) Closed(dir int) bool { return s.halves[dir].closed }

// Advance reads the records of a direction that are there whole, and hands
// their application data to each, with the runs that brought it: all bytes of a record get the time at which
// the last of its bytes came, because none can be used before, and the bytes
// of the record are the subflows' in proportion to the encrypted ones. The
// arguments of each are valid during the call. Advance stops without an error
// where it needs more bytes, or the other direction.
func (s *Session) Advance(dir int, in *stream.Buffer, each func(plain []byte, runs []stream.Run)) error {
	for {
		b := in.Bytes()
		if len(b) < headerSize {
			return cut(in)
		}
		size := headerSize + int(binary.BigEndian.Uint16(b[3:]))
		if b[0] < recordChangeCipherSpec || b[0] > recordHeartbeat || b[1] != 3 || size > headerSize+recordMax {
			return ErrMalformed
		}
		if len(b) < size {
			return cut(in)
		}
		if s.blocked(dir, b[0]) {
			return nil
		}
		plain, kind, err := s.record(dir, b[:size])
		if err != nil {
			return err
		}
		if kind == recordApplication && len(plain) > 0 {
			each(plain, s.share(in, size, len(plain)))
		} else {
			in.Discard(uint64(size), nil)
		}
	}
}

func cut(in *stream.Buffer) error {
	if in.Cut() {
		return ErrHole
	}
	return nil
}

// Partial tries to read a hello that was not captured to its end.
func (s *Session) Partial(in *stream.Buffer) (ClientHello, bool) {
	b := in.Bytes()
	text := append([]byte(nil), s.halves[up].text...)
	for len(b) > headerSize && b[0] == recordHandshake {
		size := headerSize + int(binary.BigEndian.Uint16(b[3:]))
		text = append(text, b[headerSize:min(size, len(b))]...)
		b = b[min(size, len(b)):]
	}
	if len(text) == 0 || text[0] != messageClientHello {
		return ClientHello{}, false
	}
	return ParseClientHello(text)
}

// blocked says whether a record needs what the other direction tells.
func (s *Session) blocked(dir int, kind uint8) bool {
	if dir == down {
		return !s.hasHello
	}
	if kind == recordHandshake && s.halves[up].opener == nil {
		return false
	}
	return !s.chosen || (s.early == earlyAsked && kind == recordApplication)
}

// record decrypts a record and takes notice of what it says about TLS itself.
func (s *Session) record(dir int, b []byte) (plain []byte, kind uint8, err error) {
	h := &s.halves[dir]
	plain, kind = b[headerSize:], b[0]
	switch {
	case kind == recordChangeCipherSpec:
		if s.chosen && s.server.version == tls12 && h.pending != nil {
			h.opener, h.pending, h.seq, h.text = h.pending, nil, 0, nil
		}
		return nil, kind, nil
	case s.server.version == tls13 && kind != recordApplication: // hellos, and alerts of a failed handshake
	case h.opener != nil || len(h.waiting) > 0:
		if plain, kind, err = s.open(dir, b); err != nil {
			return nil, 0, err
		}
	case kind == recordApplication:
		return nil, 0, ErrMalformed
	}
	switch kind {
	case recordAlert:
		h.closed = h.closed || len(plain) == 2 && plain[1] == 0
	case recordHandshake:
		err = s.handshake(dir, plain)
	}
	return plain, kind, err
}

// open decrypts a record. A change of keys needs no message that tells of it:
// where a key does not open a record and its successor does, the keys have
// changed, because a tag does not fit by chance.
func (s *Session) open(dir int, b []byte) ([]byte, uint8, error) {
	h := &s.halves[dir]
	if cap(*s.scratch) < recordMax {
		*s.scratch = make([]byte, 0, recordMax)
	}
	dst, header, body := (*s.scratch)[:0], b[:headerSize], b[headerSize:]
	if h.opener != nil {
		if plain, kind, ok := h.opener.open(dst, header, body, h.seq); ok {
			h.seq++
			return plain, kind, nil
		}
	}
	if s.server.version != tls13 {
		return nil, 0, ErrKeys
	}
	for i, secret := range h.successors(s.suite) {
		next, err := s.suite.opener13(secret)
		if err != nil {
			return nil, 0, ErrKeys
		}
		if plain, kind, ok := next.open(dst, header, body, 0); ok {
			h.opener, h.seq = next, 1
			if len(h.waiting) > 0 {
				h.waiting = h.waiting[i+1:]
			}
			if len(h.waiting) == 0 {
				h.secret = secret
			}
			return plain, kind, nil
		}
	}
	h.passed += len(b)
	if h.passed > s.passable(dir) {
		return nil, 0, ErrKeys
	}
	return nil, recordHandshake, nil
}

// successors are the secrets that may come into use: those of the handshake
// and of application data, then what a KeyUpdate makes of the last one
// (RFC 8446 §7.2).
func (h *half) successors(s suite) [][]byte {
	if len(h.waiting) > 0 {
		return h.waiting
	}
	next, err := s.expandLabel(h.secret, "traffic upd", len(h.secret))
	if err != nil {
		return nil
	}
	return [][]byte{next}
}

// passable is how many bytes of a direction may stay closed: early data that
// the server rejected or whose secret was not logged, and a handshake whose
// secret was not logged.
func (s *Session) passable(dir int) int {
	if dir == up && s.early != earlyNone || s.secrets.ClientHandshake == nil || s.secrets.ServerHandshake == nil {
		return earlyMax
	}
	return 0
}

// share reads a record of size bytes and makes the runs of its n bytes of content.
func (s *Session) share(in *stream.Buffer, size, n int) []stream.Run {
	runs := s.runs[:0]
	var latest int64
	in.Read(uint64(size), func(r stream.Run) {
		if len(runs) == 0 || r.TimeNS > latest {
			latest = r.TimeNS
		}
		runs = append(runs, r)
	})
	sealed, given := uint64(0), uint64(0)
	for i := range runs {
		sealed += runs[i].Bytes
		until := sealed * uint64(n) / uint64(size)
		runs[i].TimeNS, runs[i].Bytes = latest, until-given
		given = until
	}
	s.runs = runs
	return runs
}
