package tables

import (
	"io"
	"unsafe"

	"mplab/analysis/mptrace/internal/parquet"
)

// slot is a field of a sink that holds a stream, independent of the row type.
type slot interface {
	open() slot                                            // makes the stream
	keepRows(*budget)                                      // keeps the rows in memory
	writeTo(io.Writer, *description, *parquet.Pool) *table // writes the rows as Parquet
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

// batchBytes bounds the rows that are collected before they are split into
// columns: at most parquet.Batch rows, and at most what fits into the level 1
// cache.
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
