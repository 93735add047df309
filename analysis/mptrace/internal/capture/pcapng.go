package capture

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
)

// Writer writes one pcapng section with one interface and nanosecond time
// stamps (draft-ietf-opsawg-pcapng). The flushed data is always a valid file,
// even if the disk is full.
type Writer struct {
	out     io.Writer
	buffer  []byte
	written int64 // bytes of complete blocks in the file
	err     error
}

// Description holds the metadata of the file.
type Description struct {
	Interface   string
	LinkType    uint16
	SnapLen     uint32
	OS          string
	Application string
}

const flushSize = 1 << 18

// NewWriter starts a file. If out supports Truncate, the file stays valid after
// a failed write.
func NewWriter(out io.Writer, d Description) (*Writer, error) {
	w := &Writer{out: out, buffer: make([]byte, 0, flushSize+1<<17)}
	w.block(0x0a0d0d0a, func(b []byte) []byte {
		b = le32(b, 0x1a2b3c4d)
		b = append(b, 1, 0, 0, 0) // version 1.0
		b = le64(b, ^uint64(0))   // unknown section length
		b = option(b, 3, d.OS)
		return endOfOptions(option(b, 4, d.Application))
	})
	w.block(1, func(b []byte) []byte {
		b = append(b, byte(d.LinkType), byte(d.LinkType>>8), 0, 0)
		b = le32(b, d.SnapLen)
		b = option(b, 2, d.Interface)
		b = option(b, 9, "\x09") // nanoseconds
		return endOfOptions(option(b, 12, d.OS))
	})
	return w, w.Flush()
}

// Packet adds a packet that is passed in two parts.
func (w *Writer) Packet(timeNS int64, first, second []byte, origLen uint32) error {
	captured := len(first) + len(second)
	w.block(6, func(b []byte) []byte {
		b = le32(b, 0)
		b = le32(b, uint32(uint64(timeNS)>>32))
		b = le32(b, uint32(timeNS))
		b = le32(b, uint32(captured))
		b = le32(b, origLen)
		b = append(append(b, first...), second...)
		return pad(b, captured)
	})
	if len(w.buffer) >= flushSize {
		return w.Flush()
	}
	return w.err
}

// Statistics adds the counters of the interface, and flushes.
func (w *Writer) Statistics(startNS, endNS int64, received, dropped uint64) error {
	stamp := func(ns int64) string {
		var b [8]byte
		binary.LittleEndian.PutUint32(b[:], uint32(uint64(ns)>>32))
		binary.LittleEndian.PutUint32(b[4:], uint32(ns))
		return string(b[:])
	}
	count := func(n uint64) string { return string(le64(nil, n)) }
	w.block(5, func(b []byte) []byte {
		b = append(le32(b, 0), stamp(endNS)...)
		b = option(b, 2, stamp(startNS))
		b = option(b, 3, stamp(endNS))
		b = option(b, 4, count(received))
		return endOfOptions(option(b, 5, count(dropped)))
	})
	return w.Flush()
}

// Flush writes the buffer. If that fails, it cuts the file after its last
// complete block and writes nothing more.
func (w *Writer) Flush() error {
	if w.err != nil || len(w.buffer) == 0 {
		return w.err
	}
	n, err := w.out.Write(w.buffer)
	if err != nil {
		w.err = err
		whole := 0
		for whole+8 <= n {
			size := int(binary.LittleEndian.Uint32(w.buffer[whole+4:]))
			if whole+size > n {
				break
			}
			whole += size
		}
		if f, ok := w.out.(*os.File); ok {
			if cutErr := f.Truncate(w.written + int64(whole)); cutErr != nil {
				w.err = fmt.Errorf("%w; the file may end inside a packet: %w", err, cutErr)
			}
		}
		return w.err
	}
	w.written += int64(n)
	w.buffer = w.buffer[:0]
	return nil
}

// block adds a block: type, length, body, length.
func (w *Writer) block(kind uint32, body func([]byte) []byte) {
	start := len(w.buffer)
	b := body(le32(le32(w.buffer, kind), 0))
	size := uint32(len(b) - start + 4)
	binary.LittleEndian.PutUint32(b[start+4:], size)
	w.buffer = le32(b, size)
}

func option(b []byte, code uint16, value string) []byte {
	b = append(b, byte(code), byte(code>>8), byte(len(value)), byte(len(value)>>8))
	return pad(append(b, value...), len(value))
}

func endOfOptions(b []byte) []byte { return append(b, 0, 0, 0, 0) }

// pad adds zeros up to a multiple of four bytes.
func pad(b []byte, size int) []byte {
	for ; size%4 != 0; size++ {
		b = append(b, 0)
	}
	return b
}

func le32(b []byte, v uint32) []byte { return binary.LittleEndian.AppendUint32(b, v) }
func le64(b []byte, v uint64) []byte { return binary.LittleEndian.AppendUint64(b, v) }
