package capfile

import (
	"encoding/binary"
	"errors"
	"io"
	"math/bits"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Errors of [Open] and [File.Read], in addition to those of the system.
var (
	// ErrNotCapture means that the first bytes are not those of a capture.
	ErrNotCapture = errors.New("not a pcap or pcapng file")
	// ErrEmpty means that the file has no bytes.
	ErrEmpty = errors.New("empty file")
	// ErrCut means that the file ends inside a record.
	ErrCut = errors.New("cut short")
	// ErrDamaged means that a record contradicts itself.
	ErrDamaged = errors.New("damaged")
)

// Record is one captured frame. Data is valid until its batch is read again.
type Record struct {
	TimeNS  int64 // since 1970 UTC, up to 2106
	Data    []byte
	OrigLen uint32 // length on the wire
	Iface   int32  // index in [File.Interfaces]
}

// Interface describes a capture interface.
type Interface struct {
	Name     string // "" if unknown
	LinkType int    // https://www.tcpdump.org/linktypes.html
	Dropped  uint64 // packets that the capture lost, by its own statistics
	snapLen  uint32
	clock    clock
}

// File is an open capture. It is not safe for concurrent use.
type File struct {
	Name   string
	Format string // "pcap" or "pcapng"

	in         io.Reader
	walk       func(*File, *Batch, []byte) (used int, err error)
	closers    []func()
	interfaces []Interface
	swap       bool // the file is big endian

	rest []byte // unused end of the last batch: less than one record
	need int    // size of the next record, as far as known
	skip int64  // remaining bytes of a block that is being skipped
	err  error  // reason why no record follows

	header  int   // pcap: bytes before a frame
	section int32 // pcapng: index of the section's first interface
	lastNS  int64 // pcapng: time of the last packet
}

// Open opens a capture. The name "-" means standard input.
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

// New reads a capture from a stream. The name appears in errors and can contain
// the interface, as in `phone-wlan0.pcap`.
func New(name string, r io.Reader) (*File, error) {
	f := &File{Name: name, in: r}
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
	if compressed, err := f.decompress(magic); err != nil {
		return err
	} else if compressed {
		if magic, err = f.magic(); err != nil {
			return err
		}
	}
	switch binary.BigEndian.Uint32(magic[:]) {
	case 0x0a0d0d0a:
		f.Format, f.walk = "pcapng", (*File).walkPcapng
		f.rest = append(f.rest, magic[:]...)
		return nil
	case 0xa1b2c3d4, 0xa1b23c4d, 0xa1b2cd34, 0xd4c3b2a1, 0x4d3cb2a1, 0x34cdb2a1:
		return f.openPcap(magic)
	}
	return ErrNotCapture
}

func (f *File) magic() (magic [4]byte, err error) {
	n, err := io.ReadFull(f.in, magic[:])
	switch {
	case err == nil:
		return magic, nil
	case err == io.EOF:
		return magic, ErrEmpty
	case n > 0 && err == io.ErrUnexpectedEOF:
		return magic, ErrNotCapture
	}
	return magic, cut(err)
}

// Close releases the file.
func (f *File) Close() {
	for _, c := range f.closers {
		c()
	}
	f.closers = nil
}

// Interfaces returns the interfaces described so far.
func (f *File) Interfaces() []Interface { return f.interfaces }

// u32 reads a number from a file; swap means big endian.
func u32(b []byte, swap bool) uint32 {
	v := binary.LittleEndian.Uint32(b)
	if swap {
		return bits.ReverseBytes32(v)
	}
	return v
}

func u16(b []byte, swap bool) uint16 {
	v := binary.LittleEndian.Uint16(b)
	if swap {
		return bits.ReverseBytes16(v)
	}
	return v
}

func u64(b []byte, swap bool) uint64 {
	v := binary.LittleEndian.Uint64(b)
	if swap {
		return bits.ReverseBytes64(v)
	}
	return v
}

// cut returns ErrCut for an unexpected end of file, and ErrDamaged with the
// reason for other errors.
func cut(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrCut
	}
	return damaged("%w", reason(err))
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
