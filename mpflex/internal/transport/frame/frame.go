package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// HeaderSize is the size of a header in bytes.
const HeaderSize = 12

// MaxPayload is the most bytes of payload that a frame has.
const MaxPayload = 1<<16 - 1

// Type says what a frame is.
type Type uint8

// The types of frames.
const (
	Data     Type = 1 // bytes of a stream
	Ack      Type = 2 // how far a stream came, and how far it may go
	Reset    Type = 3 // a stream is over, whatever it still had to say
	Ping     Type = 4 // to be answered by Pong on the same path, with the same payload
	Pong     Type = 5 // …
	PathEnd  Type = 6 // a path has ended; how much of it was taken
	Datagram Type = 7 // a UDP datagram with its address
	GoAway   Type = 8 // the session ends
	last          = GoAway
)

// Flags are those of a header. What they mean depends on the type.
type Flags uint8

// The flags of Data.
const (
	Fin      Flags = 1 << 0 // the stream ends behind this payload
	Again    Flags = 1 << 1 // a copy of what another path carried; of Datagram: there are copies
	Answered Flags = 1 << 0 // of Reset: it answers one
)

// Header begins a frame.
type Header struct {
	Type   Type
	Flags  Flags
	Size   uint16 // of the payload
	Stream uint32
	Seq    uint32 // low half of an offset, or what the type says
}

// ErrFormat: what was read is no frame.
var ErrFormat = errors.New("not a frame")

// sizes are the least and most bytes of payload of a type.
var sizes = [last + 1]struct{ least, most uint16 }{
	Data: {0, MaxPayload}, Ack: {4, 4}, Ping: {8, 8}, Pong: {8, 8}, PathEnd: {8, 8}, Datagram: {1, MaxPayload},
}

// Append appends a header to b.
func (h Header) Append(b []byte) []byte {
	b = append(b, byte(h.Type), byte(h.Flags))
	b = binary.BigEndian.AppendUint16(b, h.Size)
	b = binary.BigEndian.AppendUint32(b, h.Stream)
	return binary.BigEndian.AppendUint32(b, h.Seq)
}

// Parse reads the header in b.
func Parse(b *[HeaderSize]byte) (Header, error) {
	h := Header{
		Type: Type(b[0]), Flags: Flags(b[1]), Size: binary.BigEndian.Uint16(b[2:]),
		Stream: binary.BigEndian.Uint32(b[4:]), Seq: binary.BigEndian.Uint32(b[8:]),
	}
	if h.Type == 0 || h.Type > last {
		return h, fmt.Errorf("%w: type %d", ErrFormat, h.Type)
	}
	if s := sizes[h.Type]; h.Size < s.least || h.Size > s.most {
		return h, fmt.Errorf("%w: type %d with %d bytes", ErrFormat, h.Type, h.Size)
	}
	return h, nil
}

// DatagramSeq is the sequence of a datagram: its label, and the low 24 bits of
// its number.
func DatagramSeq(label byte, number uint32) uint32 { return uint32(label)<<24 | number&(1<<24-1) }

// SplitDatagramSeq is the reverse of DatagramSeq.
func SplitDatagramSeq(seq uint32) (label byte, number uint32) {
	return byte(seq >> 24), seq & (1<<24 - 1)
}

// Unwrap is the offset with the low half seq that is nearest to an offset near
// it.
func Unwrap(near uint64, seq uint32) uint64 {
	return near + uint64(int64(int32(seq-uint32(near))))
}
