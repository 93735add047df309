package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
)

// Open is the first message of a stream, agent to proxy. It states the stream's
// purpose. The application's bytes follow at once. It has no MAC: the path is
// authenticated.
type Open struct {
	Command     Command        // Connect, Echo or Schemes
	Label       byte           // of the stream's scheme; 0: the default
	Source      netip.AddrPort // application's address, for the log; may be the zero AddrPort
	Destination netip.AddrPort // zero with Echo and Schemes
}

// Sizes in bytes.
const (
	openHeader = 4
	minOpen    = openHeader + 1 + 1
	maxOpen    = openHeader + 19 + 19
)

// Append appends the encoded message to b.
func (o Open) Append(b []byte) []byte {
	start := len(b)
	b = append(b, 0, 0, byte(o.Command), o.Label)
	b = appendAddr(b, o.Source)
	b = appendAddr(b, o.Destination)
	binary.BigEndian.PutUint16(b[start:], uint16(len(b)-start))
	return b
}

// ReadOpen reads one message and no further byte.
func ReadOpen(r io.Reader) (Open, error) {
	var b [maxOpen]byte
	if _, err := io.ReadFull(r, b[:2]); err != nil {
		return Open{}, fmt.Errorf("reading how a stream begins: %w", err)
	}
	size := int(binary.BigEndian.Uint16(b[:]))
	if size < minOpen || size > maxOpen {
		return Open{}, fmt.Errorf("%w: a stream begins with %d bytes", ErrFormat, size)
	}
	if _, err := io.ReadFull(r, b[2:size]); err != nil {
		return Open{}, fmt.Errorf("reading how a stream begins: %w", err)
	}
	o := Open{Command: Command(b[2]), Label: b[3]}
	var err error
	rest := b[openHeader:size]
	if o.Source, rest, err = parseAddr(rest); err != nil {
		return Open{}, err
	}
	if o.Destination, rest, err = parseAddr(rest); err != nil {
		return Open{}, err
	}
	switch {
	case len(rest) != 0:
		return Open{}, fmt.Errorf("%w: %d bytes after the addresses", ErrFormat, len(rest))
	case o.Command != Connect && o.Command != Echo && o.Command != Schemes:
		return o, fmt.Errorf("%w: %d", ErrCommand, o.Command)
	case o.Command == Connect && !o.Destination.IsValid():
		return o, fmt.Errorf("%w: connect without a destination", ErrFormat)
	}
	return o, nil
}
