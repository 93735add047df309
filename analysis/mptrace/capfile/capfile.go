// Package capfile reads packet captures: pcap and pcapng, in microseconds and
// nanoseconds, plain or compressed by gzip or zstd, from a file or a stream.
//
// Reading is sequential and needs one buffer per file. A [Record] points into
// that buffer.
package capfile

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// The errors that reading can end with, besides those of the system.
var (
	// ErrNotCapture means that the first bytes are not those of a capture.
	ErrNotCapture = errors.New("not a pcap or pcapng file")
	// ErrEmpty means that there are no bytes at all.
	ErrEmpty = errors.New("empty file")
	// ErrCut means that the file ends inside a record.
	ErrCut = errors.New("cut short")
	// ErrDamaged means that a record contradicts itself.
	ErrDamaged = errors.New("damaged")
)

// Record is one captured frame. Data is valid until the next call of Next.
type Record struct {
	TimeNS   int64 // unix
	Data     []byte
	OrigLen  int
	LinkType int
	Iface    int // index into [File.Interfaces]
}

// Interface describes where packets were captured.
type Interface struct {
	Name     string // "" when not known
	LinkType int
	Dropped  uint64 // as the capture says at its end
	ticks    ticks
	snapLen  uint32
}

// File is an open capture.
type File struct {
	Name   string
	Format string // "pcap" or "pcapng"

	in         *bufio.Reader
	pending    int // bytes of the last record, still in the buffer
	next       func(*Record) error
	closers    []func()
	interfaces []Interface
	order      binary.ByteOrder
	section    int // index of the first interface of this pcapng section
	lastNS     int64
	header     [24]byte
}

const (
	bufferSize   = 1 << 20
	maxBlockSize = bufferSize
)

// Open opens a capture; the name "-" stands for standard input.
func Open(name string) (*File, error) {
	if name == "-" {
		return New("-", os.Stdin)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, reason(err)
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		_ = f.Close()
		return nil, errors.New("is a directory")
	}
	file, err := New(name, f)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	file.closers = append(file.closers, func() { _ = f.Close() })
	return file, nil
}

// New reads a capture from a stream; name appears in results alone.
func New(name string, r io.Reader) (*File, error) {
	f := &File{Name: name, in: bufio.NewReaderSize(r, bufferSize)}
	if err := f.open(); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *File) open() error {
	magic, err := f.magic()
	if err != nil {
		return err
	}
	switch {
	case magic[0] == 0x1f && magic[1] == 0x8b:
		z, err := gzip.NewReader(f.in)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		f.in = bufio.NewReaderSize(z, bufferSize)
	case binary.LittleEndian.Uint32(magic) == 0xfd2fb528:
		z, err := zstd.NewReader(f.in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<28))
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		f.closers = append(f.closers, z.Close)
		f.in = bufio.NewReaderSize(z, bufferSize)
	}
	if magic, err = f.magic(); err != nil {
		return err
	}
	switch binary.BigEndian.Uint32(magic) {
	case 0x0a0d0d0a:
		f.Format, f.next = "pcapng", f.nextBlock
		return nil
	case 0xa1b2c3d4:
		return f.openPcap(binary.BigEndian, 6)
	case 0xa1b23c4d:
		return f.openPcap(binary.BigEndian, 9)
	case 0xd4c3b2a1:
		return f.openPcap(binary.LittleEndian, 6)
	case 0x4d3cb2a1:
		return f.openPcap(binary.LittleEndian, 9)
	}
	return ErrNotCapture
}

func (f *File) magic() ([]byte, error) {
	magic, err := f.in.Peek(4)
	switch {
	case err == nil:
		return magic, nil
	case err != io.EOF:
		return nil, reason(err)
	case len(magic) == 0:
		return nil, ErrEmpty
	}
	return nil, ErrNotCapture
}

// Close releases the file.
func (f *File) Close() {
	for _, c := range f.closers {
		c()
	}
	f.closers = nil
}

// Interfaces returns the interfaces that have been described so far.
func (f *File) Interfaces() []Interface { return f.interfaces }

// Next reads the next frame. It returns io.EOF at the end, and an error that
// wraps [ErrCut] or [ErrDamaged] when the rest cannot be read.
func (f *File) Next(r *Record) error { return f.next(r) }

// peek drops what was read before and shows the next n bytes. It returns
// io.EOF when there is nothing left, ErrCut when there is less.
func (f *File) peek(n int) ([]byte, error) {
	if f.pending > 0 {
		_, _ = f.in.Discard(f.pending) // was peeked before
		f.pending = 0
	}
	if n > maxBlockSize {
		return nil, fmt.Errorf("%w: a record of %d bytes", ErrDamaged, n)
	}
	b, err := f.in.Peek(n)
	if err == nil {
		return b, nil
	}
	if err == io.EOF && len(b) == 0 {
		return nil, io.EOF
	}
	return nil, cut(err)
}

// cut turns the error of a read inside a record into ErrCut.
func cut(err error) error {
	if errors.Is(err, ErrCut) || errors.Is(err, ErrDamaged) {
		return err
	}
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrCut
	}
	return fmt.Errorf("%w: %w", ErrDamaged, reason(err))
}

// reason strips the operation and the path from a system error.
func reason(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

var interfaceInName = regexp.MustCompile(`-([A-Za-z][A-Za-z0-9_.:@]{0,14})\.(?:pcap|cap)$`)

// interfaceOfName guesses the interface from a name such as `phone-wlan0.pcap`.
func interfaceOfName(name string) string {
	base := filepath.Base(name)
	base = strings.TrimSuffix(strings.TrimSuffix(base, ".gz"), ".zst")
	if m := interfaceInName.FindStringSubmatch(base); m != nil {
		return m[1]
	}
	return ""
}
