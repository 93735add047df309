package capfile

import (
	"fmt"
	"io"
	"slices"
)

const (
	// batchSize is the number of bytes to read at once. A batch that has just
	// been read still fits into the processor's cache when it is decoded.
	batchSize = 128 << 10
	// maxBlock is the largest block that is kept whole: a frame of maxFrame
	// bytes with its options.
	maxBlock = maxFrame + 1<<16
	// maxFrame is the longest accepted frame; a longer one means damage. The
	// limit of libpcap is 262144 bytes.
	maxFrame = 1 << 19
	// maxIdleReads is the maximum number of consecutive empty reads.
	maxIdleReads = 100
)

// Batch is a sequence of records and the buffer that they point into. The zero
// value is ready for use with any file.
type Batch struct {
	Records []Record
	Size    int // bytes to read at once; 0: 128 KiB
	buffer  []byte
}

// Read fills a batch with the next records. Their Data is valid until the same
// batch is read again; other batches can be read before that. Read returns
// io.EOF at the end of the file. If the rest of the file cannot be read, it
// returns an error that wraps [ErrCut] or [ErrDamaged]; b still holds the
// records before the error. Read waits for no more bytes of a stream than one
// record needs.
func (f *File) Read(b *Batch) error {
	b.Records = b.Records[:0]
	b.grow(max(f.need, len(f.rest)+1))
	have := copy(b.buffer, f.rest)
	f.rest = f.rest[:0]
	for f.err == nil && len(b.Records) == 0 {
		n, err := f.fill(b.buffer[have:])
		have += n
		used, bad := f.walk(f, b, b.buffer[:have])
		rest := b.buffer[used:have]
		switch {
		case bad != nil:
			f.err = bad
		case err == io.EOF && len(rest) == 0 && f.skip == 0:
			f.err = io.EOF
		case err != nil:
			f.err = cut(err)
		case len(b.Records) > 0:
			f.rest = append(f.rest, rest...)
		default:
			have = copy(b.buffer, rest)
			b.grow(max(f.need, have+1))
		}
	}
	if f.err == io.EOF && len(b.Records) > 0 {
		return nil
	}
	return f.err
}

// fill reads at least one byte into a buffer, or returns an error. It drops the
// bytes of a block that is being skipped.
func (f *File) fill(buffer []byte) (int, error) {
	for range maxIdleReads {
		n, err := f.in.Read(buffer)
		if f.skip > 0 {
			dropped := min(int64(n), f.skip)
			f.skip -= dropped
			n = copy(buffer, buffer[dropped:n])
			if dropped > 0 && err == nil {
				return n, nil
			}
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
	return 0, io.ErrNoProgress
}

// grow enlarges the buffer to size bytes and keeps its content.
func (b *Batch) grow(size int) {
	if b.Size == 0 {
		b.Size = batchSize
	}
	if size = max(size, b.Size); size > len(b.buffer) {
		larger := make([]byte, size)
		copy(larger, b.buffer)
		b.buffer = larger
	}
}

// moreRecords enlarges a full list of records.
func moreRecords(records []Record) []Record {
	records = slices.Grow(records, max(len(records), 256))
	return records[:cap(records)]
}

func damaged(format string, arguments ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, arguments...)...)
}
