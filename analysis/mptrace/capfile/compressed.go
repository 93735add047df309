package capfile

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds the memory of zstd; the zstd program has the same bound.
const maxWindow = 1 << 27

// decompress puts a decompressor in front of the input when its first bytes
// are those of gzip (RFC 1952) or zstd (RFC 8878), and else gives them back.
func (f *File) decompress(magic [4]byte) (bool, error) {
	whole := func() io.Reader {
		return bufio.NewReaderSize(io.MultiReader(bytes.NewReader(magic[:]), f.in), batchSize)
	}
	switch {
	case magic[0] == 0x1f && magic[1] == 0x8b:
		z, err := gzip.NewReader(whole())
		if err != nil {
			return false, damaged("%w", err)
		}
		f.in = z
	case binary.LittleEndian.Uint32(magic[:]) == 0xfd2fb528:
		z, err := zstd.NewReader(whole(), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return false, damaged("%w", err)
		}
		f.closers = append(f.closers, z.Close)
		f.in = z
	default:
		return false, nil
	}
	return true, nil
}
