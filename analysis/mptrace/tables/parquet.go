package tables

import (
	"fmt"
	"io"
	"strconv"
	"unsafe"

	"mplab/analysis/mptrace/internal/parquet"
)

// A row group ends when it reaches this number of rows or when its columns
// reach this number of bytes.
const (
	groupRows  = 1 << 16
	groupBytes = 1 << 20
)

// table writes rows to a Parquet file, one row group after the other. It
// collects one row group while the previous one is being written.
type table struct {
	about   *description
	columns []column
	chunks  []parquet.Chunk // of the row group that is being collected
	full    []parquet.Chunk // of the row group that is being written
	rows    int             // number of rows in chunks
	values  [parquet.Batch]uint64
	out     *parquet.Writer
	err     error         // first error
	writer  chan<- *table // accepts full row groups; nil: this goroutine writes them
	written chan struct{} // signals that a row group was written
	busy    bool          // a row group is at the writer
}

func newTable(w io.Writer, about *description, columns []column, pool *parquet.Pool) *table {
	t := &table{about: about, columns: columns, written: make(chan struct{}, 1)}
	if arrowSchemas[about.Name] == "" {
		t.err = fmt.Errorf("table %s has no Arrow schema; list it in TestArrowSchemas", about.Name)
		return t
	}
	t.out, t.err = parquet.NewWriter(w, fields(about), pool)
	t.chunks, t.full = t.out.Chunks(), t.out.Chunks()
	return t
}

var parquetTypes = map[string]parquet.Type{
	"int32": parquet.Int32, "int64": parquet.Int64, "float64": parquet.Float64, "string": parquet.String, "bool": parquet.Bool,
	"timestamp": parquet.Timestamp,
}

// fields returns the columns as Parquet fields. Connection numbers and times
// have bounds (minimum and maximum), because readers select rows by them.
func fields(about *description) []parquet.Field {
	fields := make([]parquet.Field, len(about.Columns))
	for i, c := range about.Columns {
		fields[i] = parquet.Field{
			Name: c.Name, Type: parquetTypes[c.Type], Optional: c.Nullable,
			Bounds: c.Name == "connection_id" || c.Type == "timestamp",
		}
	}
	return fields
}

// notes returns the metadata of the file. Readers that support Arrow find the
// unit and meaning of a column in the metadata of its field. arrowSchemas is
// generated, so that the program does not contain arrow-go.
func (t *table) notes() []parquet.Note {
	return []parquet.Note{
		{Key: "mptrace.schema", Value: strconv.Itoa(Schema)},
		{Key: "mptrace.table", Value: t.about.Name},
		{Key: "ARROW:schema", Value: arrowSchemas[t.about.Name]},
	}
}

// take appends n ≤ parquet.Batch rows of size bytes each.
func (t *table) take(rows unsafe.Pointer, n int, size uintptr) error {
	bytes := 0
	for i := range t.columns {
		c := &t.columns[i]
		c.gather(&t.chunks[i], unsafe.Add(rows, c.offset), size, t.values[:n])
		bytes += t.chunks[i].Size()
	}
	t.rows += n
	if t.rows+parquet.Batch <= groupRows && bytes < groupBytes {
		return nil
	}
	return t.endGroup()
}

// endGroup hands over the row group to be written. It returns the error of an
// earlier row group.
func (t *table) endGroup() error {
	if err := t.wait(); err != nil {
		return err
	}
	t.chunks, t.full = t.full, t.chunks
	t.rows = 0
	if t.writer == nil {
		t.err = t.out.WriteGroup(t.full)
		return t.err
	}
	t.busy = true
	t.writer <- t
	return nil
}

// wait waits until the row group that was handed over is written.
func (t *table) wait() error {
	if t.busy {
		<-t.written
		t.busy = false
	}
	return t.err
}

// writeGroups writes the row groups of the tables that it receives.
func writeGroups(tables <-chan *table) {
	for t := range tables {
		t.err = t.out.WriteGroup(t.full)
		t.written <- struct{}{}
	}
}

// close writes the remaining rows and the footer.
func (t *table) close() error {
	if t.rows > 0 {
		if err := t.endGroup(); err != nil {
			return err
		}
	}
	if err := t.wait(); err != nil {
		return err
	}
	return t.out.Close("mptrace", t.notes())
}
