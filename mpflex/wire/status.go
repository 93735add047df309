package wire

import (
	"crypto/hmac"
	"encoding/binary"
	"fmt"
	"io"
)

// Status is the proxy's answer to a hello, and a part of its answer to an attach.
type Status byte

// The answers.
const (
	// OK: the destination is connected and its bytes follow.
	OK Status = 0
	// Refused: the destination refused the connection.
	Refused Status = 1
	// Unreachable: there is no route to the destination, or another error occurred.
	Unreachable Status = 2
	// Timeout: the destination did not answer in time.
	Timeout Status = 3
	// Bad: the message is authentic, but not understood or not accepted.
	Bad Status = 4
	// Denied: the destination is outside the proxy's allow list.
	Denied Status = 5
	// UnknownSession: the client does not have the session, or no longer.
	UnknownSession Status = 6
	// Draining: the proxy is about to end and accepts no more paths.
	Draining Status = 7
	// Limit: the client has its maximum number of sessions or paths.
	Limit Status = 8
	// Stale: the path is attached with this incarnation or a later one.
	Stale Status = 9
)

var statusNames = map[Status]string{
	OK:          "ok",
	Refused:     "the destination refused the connection",
	Unreachable: "the destination is unreachable from the proxy",
	Timeout:     "the destination did not answer the proxy in time",
	Bad:         "the proxy did not accept the request",
	Denied:      "the destination is not in the proxy's allow list",

	UnknownSession: "the proxy does not know the session",
	Draining:       "the proxy is about to end",
	Limit:          "the proxy's limit of sessions or paths is reached",
	Stale:          "a later connection of the path is attached",
	Skewed:         "the clocks differ by more than 120 s",
}

// String returns the meaning of the status.
func (s Status) String() string {
	if name, ok := statusNames[s]; ok {
		return name
	}
	return fmt.Sprintf("status %d", byte(s))
}

// Append appends the encoded status to b, authenticated for the hello with this nonce.
func (s Status) Append(b, secret []byte, nonce [NonceSize]byte) []byte {
	start := len(b)
	b = append(b, magic[:]...)
	b = append(b, Version, byte(s), 0, statusSize)
	return append(b, mac(secret, statusLabel, nonce[:], b[start:])...)
}

// ReadStatus reads the answer to the hello with this nonce, and no further byte, and
// authenticates it. With the answer Skewed it returns a *SkewError.
func ReadStatus(r io.Reader, secret []byte, nonce [NonceSize]byte) (Status, error) {
	var buffer [skewedSize]byte
	header := buffer[:headerSize]
	if _, err := io.ReadFull(r, header); err != nil {
		return 0, fmt.Errorf("reading the status: %w", err)
	}
	if err := checkHeader(header); err != nil {
		return 0, err
	}
	status, size := Status(header[5]), statusSize
	if status == Skewed {
		size = skewedSize
	}
	if _, err := io.ReadFull(r, buffer[headerSize:size]); err != nil {
		return 0, fmt.Errorf("reading the status: %w", err)
	}
	signed, tag := buffer[:size-macSize], buffer[size-macSize:size]
	if !hmac.Equal(tag, mac(secret, statusLabel, nonce[:], signed)) {
		return 0, ErrMAC
	}
	if announced := int(binary.BigEndian.Uint16(header[6:])); announced != size {
		return 0, fmt.Errorf("%w: a status of %d bytes", ErrFormat, announced)
	}
	if status == Skewed {
		return status, parseSkewed(signed)
	}
	return status, nil
}
