package tlsread

import (
	"bytes"

	"golang.org/x/crypto/cryptobyte"
)

// Handshake messages and extensions, RFC 8446 §4, RFC 7366.
const (
	messageHelloRequest        = 0
	messageServerHello         = 2
	messageEncryptedExtensions = 8

	extensionEncryptThenMAC   = 22
	extensionEarlyData        = 42
	extensionSupportedVersion = 43
)

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
