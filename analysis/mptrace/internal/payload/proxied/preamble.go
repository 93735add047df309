package proxied

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"strconv"
)

const up, down = 0, 1

// Preamble reads the messages of a client and its proxy before the
// application's bytes: the hello of mpflex (mpflex/spec.md), SOCKS 5 (RFC 1928,
// RFC 1929), SOCKS 4 and 4a, HTTP CONNECT (RFC 9110 §9.3.6), or the request of
// ShadowSocks. The zero value is ready for use.
type Preamble struct {
	Target Target
	Kind   Kind

	request [2]step // next message of client and proxy; nil: the application's bytes
}

// Kind is a protocol between client and proxy.
type Kind uint8

// Kinds of a [Preamble].
const (
	Unknown Kind = iota
	None         // no proxy: the application's bytes come immediately
	MPFX
	SOCKS5
	SOCKS4
	Connect
	TableCipher // ShadowSocks
)

// Progress is the result of reading a direction.
type Progress uint8

// Values of [Progress].
const (
	More  Progress = iota // more bytes are needed, of this direction or of the client
	Ready                 // the application's bytes come next
	Wrong                 // the bytes are not understood
)

// step reads one message. It returns the message size (0: incomplete) and the
// next step.
type step func(p *Preamble, b []byte) (size int, next step, ok bool)

// Read reads the unread bytes of a direction and returns how many of them
// belong to the preamble. The caller must not pass those bytes again.
func (p *Preamble) Read(dir int, b []byte) (int, Progress) {
	read := 0
	if p.Kind == Unknown {
		if dir == down || !p.begin(b) {
			return 0, More
		}
	}
	for p.request[dir] != nil {
		size, next, ok := p.request[dir](p, b[read:])
		if !ok {
			return read, Wrong
		}
		if size == 0 {
			return read, More
		}
		read += size
		p.request[dir] = next
	}
	return read, Ready
}

const connect = "CONNECT "

// begin determines the kind from the client's first bytes. It returns false if
// it needs more bytes.
func (p *Preamble) begin(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	switch {
	case startsWith(b, magic):
		if len(b) < len(magic) {
			return false
		}
		p.Kind, p.request = MPFX, [2]step{mpfxHello, mpfxStatus}
	case startsWith(b, connect):
		if len(b) < len(connect) {
			return false
		}
		p.Kind, p.request = Connect, [2]step{connectRequest, connectAnswer}
	case b[0] == 5:
		if len(b) < 2 || len(b) < 2+int(b[1]) {
			return false
		}
		p.Kind = None
		if b[1] > 0 {
			p.Kind, p.request = SOCKS5, [2]step{socks5Greeting, socks5Method}
		}
	case b[0] == 4:
		if len(b) < 2 {
			return false
		}
		p.Kind = None
		if b[1] == 1 || b[1] == 2 {
			p.Kind, p.request = SOCKS4, [2]step{socks4Request, socks4Answer}
		}
	default:
		p.Kind = None
	}
	return true
}

// startsWith reports whether b and text agree up to the end of the shorter one.
func startsWith(b []byte, text string) bool {
	n := min(len(b), len(text))
	return string(b[:n]) == text[:n]
}

// Sizes of mpflex messages, mpflex/spec.md.
const (
	magic      = "MPFX"
	helloMin   = 66
	helloMax   = 102
	helloFixed = 32
	statusSize = 40
)

func mpfxHello(p *Preamble, b []byte) (int, step, bool) {
	if len(b) < 8 {
		return 0, nil, true
	}
	size := int(binary.BigEndian.Uint16(b[6:]))
	if b[4] != 1 || size < helloMin || size > helloMax {
		return 0, nil, false
	}
	if len(b) < size {
		return 0, nil, true
	}
	rest := b[helloFixed : size-32]
	_, rest, ok := mpfxAddress(rest)
	if !ok {
		return 0, nil, false
	}
	p.Target, rest, ok = mpfxAddress(rest)
	return size, nil, ok && len(rest) == 0
}

func mpfxAddress(b []byte) (t Target, rest []byte, ok bool) {
	if len(b) == 0 {
		return t, nil, false
	}
	size := 0
	switch b[0] {
	case 0:
		return t, b[1:], true
	case 4:
		size = 4
	case 6:
		size = 16
	default:
		return t, nil, false
	}
	if len(b) < 3+size {
		return t, nil, false
	}
	addr, _ := netip.AddrFromSlice(b[3 : 3+size])
	return Target{Addr: addr, Port: binary.BigEndian.Uint16(b[1:])}, b[3+size:], true
}

func mpfxStatus(_ *Preamble, b []byte) (int, step, bool) {
	if len(b) < statusSize {
		return 0, nil, startsWith(b, magic)
	}
	return statusSize, nil, startsWith(b, magic) && binary.BigEndian.Uint16(b[6:]) == statusSize
}

func connectRequest(p *Preamble, b []byte) (int, step, bool) {
	head := bytes.Index(b, []byte("\r\n\r\n"))
	if head < 0 {
		return 0, nil, len(b) <= headMax
	}
	line, _, _ := bytes.Cut(b, []byte("\r\n"))
	words := bytes.Fields(line)
	if len(words) != 3 {
		return 0, nil, false
	}
	colon := bytes.LastIndexByte(words[1], ':')
	if colon < 0 {
		return 0, nil, false
	}
	port, err := strconv.ParseUint(string(words[1][colon+1:]), 10, 16)
	host := bytes.Trim(words[1][:colon], "[]")
	if err != nil || !isHost(host) {
		return 0, nil, false
	}
	p.Target = named(string(host), uint16(port))
	return head + 4, nil, true
}

// headMax is the maximum size of the head of a CONNECT request or response.
const headMax = 16 << 10

func connectAnswer(_ *Preamble, b []byte) (int, step, bool) {
	head := bytes.Index(b, []byte("\r\n\r\n"))
	if head < 0 {
		return 0, nil, len(b) <= headMax && startsWith(b, "HTTP/1.")
	}
	words := bytes.Fields(b[:head])
	if len(words) < 2 || !startsWith(b, "HTTP/1.") || len(words[1]) != 3 || words[1][0] != '2' {
		return 0, nil, false
	}
	return head + 4, nil, true
}
