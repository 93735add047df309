package origin

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
)

// MessageSize is the size in bytes of a request, and of the answer to a put.
const MessageSize = 17

const (
	opGet     = 'G'
	opPut     = 'P'
	answerOK  = 'K'
	answerBad = 'E'

	// blockSize is prime, so that lost, duplicated or reordered pieces of a stream cannot match by chance, independent
	// of buffer and segment sizes.
	blockSize  = 1_048_583
	bufferSize = 256 << 10
)

// ErrCorrupt means that a received byte differs from the sent one.
var ErrCorrupt = errors.New("the data is not what was sent")

var block = sync.OnceValue(func() []byte {
	b := make([]byte, blockSize)
	_, _ = rand.NewChaCha8([32]byte{'m', 'p', 'f', 'l', 'e', 'x'}).Read(b)
	return b
})

type message struct {
	operation  byte
	size, seed uint64
}

func (m message) encode() []byte {
	b := []byte{m.operation}
	b = binary.BigEndian.AppendUint64(b, m.size)
	return binary.BigEndian.AppendUint64(b, m.seed)
}

func readMessage(r io.Reader) (message, error) {
	var b [MessageSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return message{}, err
	}
	return message{b[0], binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint64(b[9:])}, nil
}

// send writes size bytes of the stream of a seed.
func send(w io.Writer, size, seed uint64) error {
	all := block()
	for sent := uint64(0); sent < size; {
		at := (sent + seed%blockSize) % blockSize
		n := min(size-sent, blockSize-at, bufferSize)
		written, err := w.Write(all[at : at+n])
		sent += uint64(written)
		if err != nil {
			return fmt.Errorf("after %d of %d bytes: %w", sent, size, err)
		}
	}
	return nil
}

var buffers = sync.Pool{New: func() any { b := make([]byte, bufferSize); return &b }}

// receive reads size bytes and compares each with the stream of a seed. It returns the number of correct bytes, and
// calls first after the first read with data.
func receive(r io.Reader, size, seed uint64, first func()) (uint64, error) {
	all := block()
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	for got := uint64(0); got < size; {
		n, err := r.Read((*buffer)[:min(size-got, bufferSize)])
		if n > 0 && got == 0 && first != nil {
			first()
		}
		for data := (*buffer)[:n]; len(data) > 0; {
			at := (got + seed%blockSize) % blockSize
			part := min(uint64(len(data)), blockSize-at)
			if !bytes.Equal(data[:part], all[at:at+part]) {
				return got, fmt.Errorf("%w: within %d bytes from byte %d on", ErrCorrupt, part, got)
			}
			got += part
			data = data[part:]
		}
		if err != nil && got < size {
			return got, fmt.Errorf("after %d of %d bytes: %w", got, size, noEnd(err))
		}
	}
	return size, nil
}

// noEnd replaces io.EOF by io.ErrUnexpectedEOF, because bytes are missing.
func noEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
