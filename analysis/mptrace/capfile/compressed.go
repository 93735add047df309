package capfile

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds the memory of the zstd decoder; the zstd program uses the
// same bound.
const maxWindow = 1 << 27

// decompress inserts a decompressor if the first bytes are those of gzip (RFC
// 1952) or zstd (RFC 8878). Otherwise it returns false.
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
