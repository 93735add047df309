package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// HeaderSize is the size of a header in bytes.
const HeaderSize = 12

// MaxPayload is the maximum payload of a frame in bytes.
const MaxPayload = 1<<16 - 1

// Type is the type of a frame.
type Type uint8

// The types of frames.
const (
	Data     Type = 1 // bytes of a stream
	Ack      Type = 2 // offset that arrived, and limit of the other side's offset
	Reset    Type = 3 // ends both directions of a stream
	Ping     Type = 4 // answered by Pong on the same path with the same payload
	Pong     Type = 5 // answer to Ping
	PathEnd  Type = 6 // a path has ended; number of its bytes that were taken
	Datagram Type = 7 // a UDP datagram with its address
	GoAway   Type = 8 // the session ends
	last          = GoAway
)

// Flags are the flags of a header. Their meaning depends on the type.
type Flags uint8

// The flags.
const (
	Fin      Flags = 1 << 0 // of Data: the stream ends after this payload
	Again    Flags = 1 << 1 // of Data: a copy of a message on another path; of Datagram: copies exist
	Answered Flags = 1 << 0 // of Reset: answers a reset
)

// Header is the header of a frame.
type Header struct {
	Type   Type
	Flags  Flags
	Size   uint16 // of the payload, in bytes
	Stream uint32
	Seq    uint32 // low 32 bits of an offset, or a value that depends on the type
}

// ErrFormat reports bytes that are not a frame.
var ErrFormat = errors.New("not a frame")

// sizes holds the bounds of the payload of each type, in bytes.
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

// Parse decodes a header. It fails with ErrFormat for an unknown type or a size that
// the type cannot have.
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

// DatagramSeq returns the sequence of a datagram: its label and the low 24 bits of its
// number.
func DatagramSeq(label byte, number uint32) uint32 { return uint32(label)<<24 | number&(1<<24-1) }

// SplitDatagramSeq is the inverse of DatagramSeq.
func SplitDatagramSeq(seq uint32) (label byte, number uint32) {
	return byte(seq >> 24), seq & (1<<24 - 1)
}

// Unwrap returns the offset closest to near whose low 32 bits are seq.
func Unwrap(near uint64, seq uint32) uint64 {
	return near + uint64(int64(int32(seq-uint32(near))))
}
