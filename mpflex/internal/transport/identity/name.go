package identity

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"time"

	"mplab/mpflex/wire"
)

// The server name (SNI, RFC 6066 §3) of a ClientHello identifies the agent's secret to
// a holder of the same secret. It consists of a time, a nonce, and a MAC of both under
// the naming key, in base32 (RFC 4648 §6) with lower-case letters and no padding. To
// others it looks random, and it differs in each connection.
const (
	nameTime  = 6 // milliseconds since 1970-01-01 UTC
	nameMAC   = 16
	nameBytes = nameTime + wire.NonceSize + nameMAC
)

var nameEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// serverName is a decoded server name.
type serverName struct {
	at    time.Time
	nonce [wire.NonceSize]byte

	signed, tag []byte
}

// sealName returns a server name with this time.
func sealName(naming []byte, at time.Time) string {
	b := make([]byte, nameTime+wire.NonceSize, nameBytes)
	ms := uint64(at.UnixMilli())
	for i := range nameTime {
		b[i] = byte(ms >> (8 * (nameTime - 1 - i)))
	}
	_, _ = rand.Read(b[nameTime:]) // never fails: crypto/rand ends the program instead
	return nameEncoding.EncodeToString(append(b, macName(naming, b)...))
}

// parseName decodes a server name without authenticating it.
func parseName(name string) (serverName, bool) {
	if len(name) != nameEncoding.EncodedLen(nameBytes) {
		return serverName{}, false
	}
	b, err := nameEncoding.DecodeString(name)
	if err != nil || nameEncoding.EncodeToString(b) != name {
		return serverName{}, false
	}
	var ms uint64
	for _, c := range b[:nameTime] {
		ms = ms<<8 | uint64(c)
	}
	end := nameTime + wire.NonceSize
	return serverName{time.UnixMilli(int64(ms)), [wire.NonceSize]byte(b[nameTime:end]), b[:end], b[end:]}, true
}

// by reports whether a holder of this naming key made the name.
func (n serverName) by(naming []byte) bool { return hmac.Equal(n.tag, macName(naming, n.signed)) }

func macName(naming, signed []byte) []byte {
	h := hmac.New(sha256.New, naming)
	_, _ = h.Write(signed)
	return h.Sum(nil)[:nameMAC]
}
