package capfile

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// Types of [Block].
const (
	BlockSection    = blockSection
	BlockInterface  = blockInterface
	BlockStatistics = blockStatistics
	BlockEnhanced   = blockEnhanced
)

// Block is a block of a pcapng file. Its slices can be changed. They are valid
// until the next block is read.
type Block struct {
	Type     uint32
	Fields   []byte // before frame and options
	Frame    []byte // captured frame, nil if the block is not a packet
	LinkType int    // of Frame
	options  []byte
	file     *File
}

// sectionFields is the length of the fields of a section header: byte order,
// version, length of the section.
const sectionFields = 16

// fieldSizes maps other block types to the length of the fields before frame and
// options.
var fieldSizes = map[uint32]int{
	blockInterface: 8, blockPacket: 20, blockSimple: 4, blockStatistics: 12, blockEnhanced: 20,
}

// Blocks reads a pcapng file block by block, for programs that write it again.
type Blocks struct {
	file  *File
	in    *bufio.Reader
	batch Batch
	used  int // bytes of the previous block
}

// NewBlocks returns a reader of blocks, or an error for another format. Nothing
// else may read from the file.
func NewBlocks(f *File) (*Blocks, error) {
	if f.Format != "pcapng" {
		return nil, errors.New("not a pcapng file")
	}
	return &Blocks{file: f, in: bufio.NewReaderSize(io.MultiReader(bytes.NewReader(f.rest), f.in), maxBlock)}, nil
}

// Next returns the next section, interface, packet or statistics block, and
// skips all others. It returns io.EOF at the end of the file. If the rest of the
// file cannot be read, it returns an error that wraps [ErrCut] or [ErrDamaged].
func (b *Blocks) Next() (Block, error) {
	for {
		if err := b.skip(); err != nil {
			return Block{}, err
		}
		block, err := b.in.Peek(minBlock)
		if err != nil {
			if len(block) == 0 && err == io.EOF {
				return Block{}, io.EOF
			}
			return Block{}, cut(err)
		}
		b.batch.Records, b.file.need = b.batch.Records[:0], 0
		n, err := b.file.readBlock(&b.batch, block)
		if err == nil && b.file.need > 0 {
			if block, err = b.in.Peek(b.file.need); err != nil {
				return Block{}, cut(err)
			}
			n, err = b.file.readBlock(&b.batch, block)
		}
		if err != nil {
			return Block{}, err
		}
		b.used = n
		switch kind := u32(block, b.file.swap); kind {
		case blockSection:
			return b.section()
		case blockInterface, blockPacket, blockSimple, blockStatistics, blockEnhanced:
			return b.split(kind, block[8:n-4]), nil
		}
	}
}

// skip uses up the previous block.
func (b *Blocks) skip() error {
	size := int64(b.used) + b.file.skip
	b.used, b.file.skip = 0, 0
	if n, err := io.CopyN(io.Discard, b.in, size); n < size {
		return cut(err)
	}
	return nil
}

// section returns a section header without its options, which can be longer than
// the buffer.
func (b *Blocks) section() (Block, error) {
	const end = 8 + sectionFields
	block, err := b.in.Peek(end)
	if err != nil {
		return Block{}, cut(err)
	}
	return Block{Type: blockSection, Fields: block[end-sectionFields:], file: b.file}, nil
}

// split divides the body of a valid block.
func (b *Blocks) split(kind uint32, body []byte) Block {
	f, size := b.file, fieldSizes[kind]
	block := Block{Type: kind, Fields: body[:size], options: body[size:], file: f}
	if len(b.batch.Records) > 0 {
		r := &b.batch.Records[0]
		block.Frame, block.LinkType = r.Data, f.interfaces[r.Iface].LinkType
		block.options = block.options[min(len(block.options), (len(r.Data)+3)&^3):]
	}
	if kind == blockSimple { // it has no options
		block.options = nil
	}
	return block
}

// Append appends the block with those options for which keep returns true. It
// fills padding with zeros.
func (b *Block) Append(dst []byte, keep func(code uint16, value []byte) bool) []byte {
	order := binary.AppendByteOrder(binary.LittleEndian)
	if b.file.swap {
		order = binary.BigEndian
	}
	start := len(dst)
	dst = order.AppendUint32(order.AppendUint32(dst, b.Type), 0)
	dst = appendPadded(append(dst, b.Fields...), b.Frame)
	withoutOptions := len(dst)
	b.file.options(b.options, func(code uint16, value []byte) {
		if keep(code, value) {
			dst = order.AppendUint16(order.AppendUint16(dst, code), uint16(len(value)))
			dst = appendPadded(dst, value)
		}
	})
	if len(dst) > withoutOptions {
		dst = append(dst, 0, 0, 0, 0) // end of options
	}
	size := order.AppendUint32(nil, uint32(len(dst)-start+4))
	copy(dst[start+4:], size)
	return append(dst, size...)
}

func appendPadded(dst, value []byte) []byte {
	dst = append(dst, value...)
	return append(dst, make([]byte, -len(value)&3)...)
}
