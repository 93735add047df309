package tlsread

import (
	"encoding/binary"
	"errors"
	"slices"

	"mplab/analysis/mptrace/internal/payload/stream"
	"mplab/analysis/mptrace/internal/payload/tlskeys"
	"mplab/internal/tlshello"
)

// Reasons why a direction cannot be decrypted to its end.
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
	// earlyMax is the maximum number of skipped bytes of rejected early data.
	earlyMax = 1 << 20

	up, down = 0, 1
)

// Session is one TLS connection.
type Session struct {
	keys    *tlskeys.Log
	scratch *[]byte

	hello    tlshello.Hello
	hasHello bool
	secrets  *tlskeys.Secrets
	server   serverHello
	chosen   bool // the ServerHello is known
	suite    suite
	early    earlyState
	halves   [2]half
	runs     []stream.Run // of the current record
}

// earlyState is the state of the client's early data.
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
	waiting [][]byte // TLS 1.3: the next traffic secrets
	secret  []byte   // TLS 1.3: the current secret of application data
	pending opener   // TLS 1.2: used after ChangeCipherSpec
	text    []byte   // incomplete handshake messages
	passed  int      // bytes of records that no key opened
	closed  bool
}

// New returns a session that uses the secrets of a key log. Sessions can share
// scratch.
func New(keys *tlskeys.Log, scratch *[]byte) *Session { return &Session{keys: keys, scratch: scratch} }

// Hello returns the ClientHello, if it has been read.
func (s *Session) Hello() (tlshello.Hello, bool) { return s.hello, s.hasHello }

// Closed reports whether a direction sent close_notify.
func (s *Session) Closed(dir int) bool { return s.halves[dir].closed }

// Advance reads the complete records of a direction and passes their
// application data to each, with its runs. All bytes of a record get the
// arrival time of the record's last byte, because none can be used earlier.
// They are attributed to the subflows in proportion to the encrypted bytes. The
// arguments of each are valid during the call. Advance returns nil when it
// needs more bytes or the other direction.
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

// Partial reads a ClientHello whose end is missing.
func (s *Session) Partial(in *stream.Buffer) tlshello.Hello {
	fragments, _ := tlshello.Join(in.Bytes())
	hello, _ := tlshello.Parse(slices.Concat(s.halves[up].text, fragments))
	return hello
}

// blocked reports whether a record depends on messages of the other direction.
func (s *Session) blocked(dir int, kind uint8) bool {
	if dir == down {
		return !s.hasHello
	}
	if kind == recordHandshake && s.halves[up].opener == nil {
		return false
	}
	return !s.chosen || (s.early == earlyAsked && kind == recordApplication)
}

// record decrypts a record and processes handshake messages and alerts.
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

// open decrypts a record. It detects a key change without the message that
// announces it: if a key does not open a record but its successor does, the
// keys have changed, because an authentication tag does not match by chance.
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

// successors returns the secrets that can be used next: those of the handshake
// and of application data, then the KeyUpdate of the last one (RFC 8446 §7.2).
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

// passable returns the maximum number of undecryptable bytes of a direction:
// early data that the server rejected or whose secret was not logged, and a
// handshake whose secret was not logged.
func (s *Session) passable(dir int) int {
	if dir == up && s.early != earlyNone || s.secrets.ClientHandshake == nil || s.secrets.ServerHandshake == nil {
		return earlyMax
	}
	return 0
}

// share reads a record of size bytes and computes the runs of its n bytes of
// content.
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
