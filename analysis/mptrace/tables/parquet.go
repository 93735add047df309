package tables

import (
	"bytes"
	"encoding/base64"
	"io"
	"strconv"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"mplab/analysis/mptrace/internal/parquet"
)

// A row group ends when it has this many rows, or when its columns hold this
// many bytes.
const (
	groupRows  = 1 << 16
	groupBytes = 2 << 20
)

// table writes rows as a Parquet file, one row group after the other: one is
// written while the next is collected.
type table struct {
	about   *description
	columns []column
	chunks  []parquet.Chunk // of the row group that is collected
	full    []parquet.Chunk // of the one that is written
	rows    int             // that are collected
	values  [parquet.Batch]uint64
	out     *parquet.Writer
	err     error         // the first
	writer  chan<- *table // writes row groups that were handed over; nil: this goroutine does
	written chan struct{} // it is done with one
	busy    bool          // it has one
}

func newTable(w io.Writer, about *description, columns []column, pool *parquet.Pool) *table {
	t := &table{about: about, columns: columns, written: make(chan struct{}, 1)}
	t.out, t.err = parquet.NewWriter(w, fields(about), pool)
	t.chunks, t.full = t.out.Chunks(), t.out.Chunks()
	return t
}

var parquetTypes = map[string]parquet.Type{
	"int32": parquet.Int32, "int64": parquet.Int64, "float64": parquet.Float64, "string": parquet.String, "bool": parquet.Bool,
}

// fields are the columns as the format has them, with bounds for numbers of
// connections and for times: it is by these that readers look for rows.
func fields(about *description) []parquet.Field {
	fields := make([]parquet.Field, len(about.Columns))
	for i, c := range about.Columns {
		fields[i] = parquet.Field{
			Name: c.Name, Type: parquetTypes[c.Type], Optional: c.Nullable,
			Bounds: c.Name == "connection_id" || c.Unit == "ns",
		}
	}
	return fields
}

// notes are those of the file. Readers that know Arrow find unit and meaning
// of a column in the metadata of its field.
func (t *table) notes() []parquet.Note {
	return []parquet.Note{
		{Key: "mptrace.schema", Value: strconv.Itoa(Schema)},
		{Key: "mptrace.table", Value: t.about.Name},
		{Key: "ARROW:schema", Value: base64.StdEncoding.EncodeToString(arrowSchema(t.about))},
	}
}

var arrowTypes = map[string]arrow.DataType{
	"int32":   arrow.PrimitiveTypes.Int32,
	"int64":   arrow.PrimitiveTypes.Int64,
	"float64": arrow.PrimitiveTypes.Float64,
	"string":  arrow.BinaryTypes.String,
	"bool":    arrow.FixedWidthTypes.Boolean,
}

// arrowSchema is the table's schema as the beginning of an Arrow stream.
func arrowSchema(about *description) []byte {
	fields := make([]arrow.Field, len(about.Columns))
	for i, c := range about.Columns {
		fields[i] = arrow.Field{Name: c.Name, Type: arrowTypes[c.Type], Nullable: c.Nullable, Metadata: metadata("unit", c.Unit, "doc", c.Doc)}
	}
	named := metadata("mptrace.schema", strconv.Itoa(Schema), "mptrace.table", about.Name, "doc", about.Doc)
	var b bytes.Buffer
	_ = ipc.NewWriter(&b, ipc.WithSchema(arrow.NewSchema(fields, &named))).Close() // a buffer takes everything
	return b.Bytes()
}

// metadata are pairs of key and value; those without value are left out.
func metadata(pairs ...string) arrow.Metadata {
	var keys, values []string
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			keys, values = append(keys, pairs[i]), append(values, pairs[i+1])
		}
	}
	return arrow.NewMetadata(keys, values)
}

// take takes n ≤ parquet.Batch rows of so many bytes.
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

// endGroup hands the row group over. The error is that of an earlier one.
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

// writeGroups writes the row groups of tables that come.
func writeGroups(tables <-chan *table) {
	for t := range tables {
		t.err = t.out.WriteGroup(t.full)
		t.written <- struct{}{}
	}
}

// close writes the rest.
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
