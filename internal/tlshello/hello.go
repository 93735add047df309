package tlshello

import "math"

// Handshake messages and extensions, RFC 8446 §4, RFC 6066 §3.
const (
	ClientHello = 1

	extensionServerName = 0
	extensionEarlyData  = 42

	nameTypeHost = 0
)

// Hello holds the used fields of a ClientHello.
type Hello struct {
	Random    [32]byte
	HasRandom bool // Random is complete
	// ServerName is the first name of the server_name extension, or "". With
	// Encrypted Client Hello it is the outer name, which is that of the provider.
	ServerName    string
	HasServerName bool // server_name was read; its content can be none or malformed
	EarlyData     bool
}

// State is the part of a message that could be read.
type State uint8

// The states.
const (
	Complete State = iota // all of it
	Partial               // more bytes can follow
	Broken                // not a ClientHello, or a length exceeds that of its structure
)

// Parse reads a ClientHello with its header. The message can end anywhere. The
// fields before its end, or before a wrong length, are set.
func Parse(message []byte) (hello Hello, state State) {
	m := part{message, math.MaxInt, &state}
	if m.number(1) != ClientHello && state == Complete {
		return hello, Broken
	}
	body := m.vector(3)
	body.take(2) // legacy_version
	hello.HasRandom = copy(hello.Random[:], body.take(32)) == 32
	body.vector(1) // legacy_session_id
	body.vector(2) // cipher_suites
	body.vector(1) // legacy_compression_methods
	extensions := body.vector(2)
	for state == Complete && extensions.size > 0 {
		kind, data := extensions.number(2), extensions.vector(2)
		if state != Complete {
			break
		}
		switch {
		case kind == extensionServerName && !hello.HasServerName:
			hello.ServerName, hello.HasServerName = serverName(data)
		case kind == extensionEarlyData:
			hello.EarlyData = true
		}
		if len(data.have) < data.size {
			state = Partial
		}
	}
	return hello, state
}

// serverName reads the list of RFC 6066 §3, which has one name. It returns
// false if bytes are missing.
func serverName(data part) (string, bool) {
	var state State
	data.state = &state
	list := data.vector(2)
	if kind := list.number(1); state == Complete && kind != nameTypeHost {
		return "", true
	}
	name := list.vector(2)
	host := name.take(name.size)
	return string(host), state != Partial
}

// part is a structure whose last bytes may be missing. After a failed read all
// further reads fail.
type part struct {
	have  []byte
	size  int    // number of bytes that belong to it and were not read
	state *State // of the message
}

// take returns the next n bytes, or nil.
func (p *part) take(n int) []byte {
	switch {
	case *p.state != Complete:
		return nil
	case n > p.size:
		*p.state = Broken
		return nil
	case n > len(p.have):
		*p.state = Partial
		return nil
	}
	taken := p.have[:n]
	p.have, p.size = p.have[n:], p.size-n
	return taken
}

// number returns an integer of n bytes.
func (p *part) number(n int) (value int) {
	for _, digit := range p.take(n) {
		value = value<<8 | int(digit)
	}
	return value
}

// vector returns the structure that follows a length of n bytes.
func (p *part) vector(n int) part {
	size := p.number(n)
	if *p.state == Complete && size > p.size {
		*p.state = Broken
	}
	if *p.state != Complete {
		return part{state: p.state}
	}
	v := part{p.have[:min(size, len(p.have))], size, p.state}
	p.have, p.size = p.have[len(v.have):], p.size-size
	return v
}
