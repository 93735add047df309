package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"io"
	"time"
)

// Version is the version of the format.
const Version = 1

// MaxSkew is the maximum difference between the clocks of agent and proxy.
const MaxSkew = 120 * time.Second

// Sizes in bytes.
const (
	NonceSize  = 16
	macSize    = sha256.Size
	headerSize = 8
	fixedSize  = headerSize + 8 + NonceSize // header, time, nonce
	addrMin    = 1
	addrMax    = 1 + 2 + 16
	minHello   = fixedSize + 2*addrMin + macSize
	maxHello   = fixedSize + 2*addrMax + macSize
	statusSize = headerSize + macSize
)

var magic = [4]byte{'M', 'P', 'F', 'X'}

// Labels separate the MACs of different messages.
const (
	helloLabel    = "mpflex 1 hello\x00"
	statusLabel   = "mpflex 1 status\x00"
	attachLabel   = "mpflex 1 attach\x00"
	attachedLabel = "mpflex 1 attached\x00"
)

// Errors of the format: the peer uses another protocol or another version.
var (
	// ErrFormat reports bytes that are not a valid message.
	ErrFormat = errors.New("not an mpflex message")
	// ErrVersion reports a message of another version of the format.
	ErrVersion = errors.New("another version of the mpflex format")
	// ErrCommand reports an unknown command.
	ErrCommand = errors.New("unknown command")
)

// Errors of authentication.
var (
	// ErrMAC reports that the peer does not have the secret, or that the message was
	// changed.
	ErrMAC = errors.New("authentication failed: the secrets differ")
	// ErrSkew reports that a message's time is too far from the proxy's.
	ErrSkew = errors.New("the clocks differ by more than 120 s")
	// ErrReplay reports a message that was seen before.
	ErrReplay = errors.New("replayed hello")
	// ErrReplayFull reports more messages within the replay window than are stored.
	ErrReplayFull = errors.New("too many hellos within the replay window")
)

// mac returns the HMAC-SHA256 (RFC 2104, FIPS 180-4) of a label and parts.
func mac(secret []byte, label string, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, secret)
	_, _ = io.WriteString(h, label)
	for _, part := range parts {
		_, _ = h.Write(part)
	}
	return h.Sum(nil)
}
