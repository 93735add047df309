package tlsread

import (
	"bytes"

	"golang.org/x/crypto/cryptobyte"

	"mplab/analysis/mptrace/internal/payload/tlskeys"
)

// Handshake messages and extensions, RFC 8446 §4, RFC 6066 §3, RFC 7366.
const (
	messageHelloRequest        = 0
	messageClientHello         = 1
	messageServerHello         = 2
	messageEncryptedExtensions = 8

	extensionServerName       = 0
	extensionEncryptThenMAC   = 22
	extensionEarlyData        = 42
	extensionSupportedVersion = 43
)

// ClientHello holds the used fields of a ClientHello.
type ClientHello struct {
	Random tlskeys.Random
	// ServerName is the server_name extension, or "". With Encrypted Client
	// Hello it is the outer name, which is that of the provider.
	ServerName string
	EarlyData  bool
}

// ParseClientHello reads a ClientHello message, whose end may be missing. It
// returns false if the message ends before the random.
func ParseClientHello(message []byte) (hello ClientHello, ok bool) {
	s := cryptobyte.String(message)
	var version uint16
	if !s.Skip(4) || !s.ReadUint16(&version) || !s.CopyBytes(hello.Random[:]) {
		return hello, false
	}
	var part cryptobyte.String
	if !s.ReadUint8LengthPrefixed(&part) || !s.ReadUint16LengthPrefixed(&part) || !s.ReadUint8LengthPrefixed(&part) {
		return hello, true
	}
	each(s, func(kind uint16, body cryptobyte.String) {
		switch kind {
		case extensionServerName:
			hello.ServerName = serverName(body)
		case extensionEarlyData:
			hello.EarlyData = true
		}
	})
	return hello, true
}

// serverName reads the list of RFC 6066 §3, which has one name.
func serverName(body cryptobyte.String) string {
	var list, name cryptobyte.String
	var kind uint8
	if !body.ReadUint16LengthPrefixed(&list) || !list.ReadUint8(&kind) || kind != 0 || !list.ReadUint16LengthPrefixed(&name) {
		return ""
	}
	return string(name)
}

// each calls f for each complete extension.
func each(s cryptobyte.String, f func(kind uint16, body cryptobyte.String)) {
	var kind, size uint16
	if !s.ReadUint16(&size) {
		return
	}
	if int(size) < len(s) {
		s = s[:size]
	}
	for {
		var body cryptobyte.String
		if !s.ReadUint16(&kind) || !s.ReadUint16LengthPrefixed(&body) {
			return
		}
		f(kind, body)
	}
}

// serverHello holds the used fields of a ServerHello.
type serverHello struct {
	version        uint16
	suite          uint16
	random         [32]byte
	retry          bool // it is a HelloRetryRequest
	compressed     bool
	encryptThenMAC bool
}

// retryRandom marks a HelloRetryRequest, RFC 8446 §4.1.3.
var retryRandom = []byte{
	0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
	0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
}

func parseServerHello(message []byte) (hello serverHello, ok bool) {
	s := cryptobyte.String(message)
	var session cryptobyte.String
	var compression uint8
	if !s.Skip(4) || !s.ReadUint16(&hello.version) || !s.CopyBytes(hello.random[:]) ||
		!s.ReadUint8LengthPrefixed(&session) || !s.ReadUint16(&hello.suite) || !s.ReadUint8(&compression) {
		return hello, false
	}
	hello.retry = bytes.Equal(hello.random[:], retryRandom)
	hello.compressed = compression != 0
	each(s, func(kind uint16, body cryptobyte.String) {
		switch kind {
		case extensionSupportedVersion:
			body.ReadUint16(&hello.version)
		case extensionEncryptThenMAC:
			hello.encryptThenMAC = true
		}
	})
	return hello, true
}

// acceptsEarlyData reports whether EncryptedExtensions accept early data.
func acceptsEarlyData(message []byte) bool {
	accepts := false
	each(cryptobyte.String(message[4:]), func(kind uint16, _ cryptobyte.String) {
		accepts = accepts || kind == extensionEarlyData
	})
	return accepts
}

// message returns the first handshake message of b including its header, or nil
// if it is incomplete.
func message(b []byte) []byte {
	if len(b) < 4 {
		return nil
	}
	size := 4 + int(b[1])<<16 + int(b[2])<<8 + int(b[3])
	if len(b) < size {
		return nil
	}
	return b[:size]
}
