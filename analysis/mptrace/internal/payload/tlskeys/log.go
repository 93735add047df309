package tlskeys

import (
	"bytes"
	"encoding/hex"
	"fmt"

	"mplab/internal/lines"
)

// Random is the client random of a connection's first ClientHello.
type Random [32]byte

// Secrets are the logged secrets of one connection. A missing secret is nil.
type Secrets struct {
	Master                           []byte // TLS 1.2
	ClientEarly                      []byte // TLS 1.3, RFC 8446 §7.1
	ClientHandshake, ServerHandshake []byte
	Client, Server                   []byte // of the first application data keys
}

// Log holds the secrets of connections.
type Log struct{ connections map[Random]*Secrets }

// Find returns the secrets of a connection, or nil.
func (l *Log) Find(r Random) *Secrets {
	if l == nil {
		return nil
	}
	return l.connections[r]
}

// Open reads key logs. An error contains file and line.
func Open(names ...string) (*Log, error) {
	l := &Log{connections: map[Random]*Secrets{}}
	tooLong := fmt.Sprintf("a line of more than %d bytes, want %s", maxLine, form)
	if err := lines.Read(names, maxLine, tooLong, l.line); err != nil {
		return nil, err
	}
	return l, nil
}

// maxLine is the maximum length of a line in bytes, more than a label and a
// secret can need.
const maxLine = 64 << 10

const form = "a label, the client random (64 hexadecimal digits) and the secret (hexadecimal)"

// sizes maps each label to the allowed lengths of its secret.
var sizes = map[string][]int{
	"CLIENT_RANDOM":                   {48},
	"CLIENT_EARLY_TRAFFIC_SECRET":     {32, 48},
	"CLIENT_HANDSHAKE_TRAFFIC_SECRET": {32, 48},
	"SERVER_HANDSHAKE_TRAFFIC_SECRET": {32, 48},
	"CLIENT_TRAFFIC_SECRET_0":         {32, 48},
	"SERVER_TRAFFIC_SECRET_0":         {32, 48},
}

// line processes one line; it ignores other labels.
func (l *Log) line(b []byte) error {
	if b = bytes.TrimSpace(b); len(b) == 0 || b[0] == '#' {
		return nil
	}
	fields := bytes.Fields(b)
	if len(fields) != 3 {
		return fmt.Errorf("%d words, want %s", len(fields), form)
	}
	label := string(fields[0])
	allowed, known := sizes[label]
	if !known {
		return nil
	}
	var random Random
	if n, err := hex.Decode(random[:], fields[1][:min(len(fields[1]), 64)]); err != nil || n != 32 || len(fields[1]) != 64 {
		return fmt.Errorf("the client random %s, want 64 hexadecimal digits", shown(fields[1]))
	}
	secret := make([]byte, hex.DecodedLen(len(fields[2])))
	if _, err := hex.Decode(secret, fields[2]); err != nil {
		return fmt.Errorf("a secret that is not hexadecimal in a line of %s, want %s", label, form)
	}
	if !fits(len(secret), allowed) {
		return fmt.Errorf("a secret of %d bytes in a line of %s, want %s", len(secret), label, list(allowed))
	}
	s := l.connections[random]
	if s == nil {
		s = &Secrets{}
		l.connections[random] = s
	}
	*s.field(label) = secret
	return nil
}

func (s *Secrets) field(label string) *[]byte {
	switch label {
	case "CLIENT_RANDOM":
		return &s.Master
	case "CLIENT_EARLY_TRAFFIC_SECRET":
		return &s.ClientEarly
	case "CLIENT_HANDSHAKE_TRAFFIC_SECRET":
		return &s.ClientHandshake
	case "SERVER_HANDSHAKE_TRAFFIC_SECRET":
		return &s.ServerHandshake
	case "CLIENT_TRAFFIC_SECRET_0":
		return &s.Client
	}
	return &s.Server
}

func fits(n int, allowed []int) bool {
	for _, a := range allowed {
		if n == a {
			return true
		}
	}
	return false
}

func list(sizes []int) string {
	if len(sizes) == 1 {
		return fmt.Sprintf("%d", sizes[0])
	}
	return fmt.Sprintf("%d or %d", sizes[0], sizes[1])
}

// shown quotes the start of a word.
func shown(b []byte) string {
	if len(b) > 20 {
		return fmt.Sprintf("%q… of %d characters", b[:20], len(b))
	}
	return fmt.Sprintf("%q", b)
}
