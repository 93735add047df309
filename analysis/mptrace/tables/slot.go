package tables

import (
	"io"
	"unsafe"

	"mplab/analysis/mptrace/internal/parquet"
)

// slot is the place of a stream in a sink, whatever its rows are.
type slot interface {
	open() slot                                            // makes the stream
	keepRows(*budget)                                      // keeps its rows in memory
	writeTo(io.Writer, *description, *parquet.Pool) *table // and writes them as Parquet
	flush()
	err() error
}

func of[R any](at **Stream[R]) slot { return &slotOf[R]{at} }

type slotOf[R any] struct{ at **Stream[R] }

func (s *slotOf[R]) open() slot {
	*s.at = &Stream[R]{}
	return s
}

func (s *slotOf[R]) keepRows(b *budget) { (*s.at).keep, (*s.at).budget = true, b }
func (s *slotOf[R]) flush()             { (*s.at).flush() }
func (s *slotOf[R]) err() error         { return (*s.at).err }

// Rows wait before they are taken apart into columns: as many as a chunk takes
// at once, of wide ones as many as the processor's first cache holds.
const batchBytes = 32 << 10

func (s *slotOf[R]) writeTo(w io.Writer, about *description, pool *parquet.Pool) *table {
	t := newTable(w, about, columnsOf[R](), pool)
	size := unsafe.Sizeof(*new(R))
	stream := *s.at
	stream.full = max(1, min(parquet.Batch, batchBytes/int(size)))
	stream.write = func(rows []R) error {
		for len(rows) > 0 {
			n := min(len(rows), stream.full)
			if err := t.take(unsafe.Pointer(&rows[0]), n, size); err != nil {
				return err
			}
			rows = rows[n:]
		}
		return nil
	}
	return t
}
