package probe

import (
	"crypto/rand"
	"encoding/binary"
)

// The probe uses UDP. Every message has the same 48-byte header, in network byte order; data messages are padded.
//
//	 0  4  magic "LKP1"
//	 4  1  kind
//	 5  3  zero
//	 8 16  token
//	24  4  sequence number, or number of the run
//	28  4  zero
//	32  8  first value
//	40  8  second value
//
// The client starts with hello (token: a nonce) and receives welcome, whose token is required in all other messages.
// Only the real owner of an address learns that token, so a client with a forged address cannot make the server flood a
// third party.
const (
	magic          = "LKP1"
	headBytes      = 48
	udpOverhead    = 28   // IPv4 and UDP headers
	udp6Overhead   = 48   // IPv6 and UDP headers
	largestMessage = 1500 // IP bytes of a data message
)

type kind byte

const (
	kindHello     kind = iota + 1 // client: token = nonce
	kindWelcome                   // server: values = the nonce
	kindEcho                      // client: sequence
	kindEchoed                    // server: sequence; first = ns from the kernel's arrival stamp to the answer
	kindDownStart                 // client: sequence = run; first = rate in bit/s; second = ms<<32 | IP bytes of a message
	kindDownData                  // server: sequence = run
	kindDownEnd                   // server: sequence = run; first = messages sent
	kindUpData                    // client: sequence = run
	kindUpAsk                     // client: sequence = run
	kindUpReport                  // server: sequence = run; first = rate in bit/s, 0: too few messages; second = messages
	kindRefused                   // server: first = reason
)

// token identifies a session; it is a secret of server and client.
type token [16]byte

func newToken() token {
	var token token
	_, _ = rand.Read(token[:]) // never fails (crypto/rand)
	return token
}

// halves returns the token as two numbers.
func (t token) halves() (first, second uint64) {
	return binary.BigEndian.Uint64(t[:8]), binary.BigEndian.Uint64(t[8:])
}

type message struct {
	kind          kind
	token         token
	sequence      uint32
	first, second uint64
}

// put writes the header into buffer, which must have at least headBytes bytes.
func (m message) put(buffer []byte) {
	copy(buffer, magic)
	clear(buffer[4:headBytes])
	buffer[4] = byte(m.kind)
	copy(buffer[8:24], m.token[:])
	binary.BigEndian.PutUint32(buffer[24:], m.sequence)
	binary.BigEndian.PutUint64(buffer[32:], m.first)
	binary.BigEndian.PutUint64(buffer[40:], m.second)
}

// parse reads a header. It returns false if there is none.
func parse(packet []byte) (message, bool) {
	if len(packet) < headBytes || string(packet[:4]) != magic {
		return message{}, false
	}
	m := message{
		kind:     kind(packet[4]),
		token:    token(packet[8:24]),
		sequence: binary.BigEndian.Uint32(packet[24:]),
		first:    binary.BigEndian.Uint64(packet[32:]),
		second:   binary.BigEndian.Uint64(packet[40:]),
	}
	return m, m.kind >= kindHello && m.kind <= kindRefused
}
