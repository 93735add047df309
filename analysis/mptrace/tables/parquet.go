package tables

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// The names of the tables in a directory.
const (
	ConnectionsFile = "connections.parquet"
	SubflowsFile    = "subflows.parquet"
)

// WriteParquet writes both tables into a directory, which is made when it is
// not there. Each file appears whole or not at all, and the same rows always
// make the same bytes.
func (r *Result) WriteParquet(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := writeTable(filepath.Join(dir, ConnectionsFile), connectionColumns, r.Connections); err != nil {
		return err
	}
	return writeTable(filepath.Join(dir, SubflowsFile), subflowColumns, r.Subflows)
}

func writeTable[R any](path string, columns []column[R], rows []R) error {
	return atomically(path, func(w io.Writer) error { return encode(w, columns, rows) })
}

// rowsPerGroup bounds the memory that the builders need.
const rowsPerGroup = 1 << 17

func encode[R any](w io.Writer, columns []column[R], rows []R) error {
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = arrow.Field{Name: c.name, Type: c.kind, Nullable: c.nullable}
		if c.unit != "" {
			fields[i].Metadata = arrow.NewMetadata([]string{"unit"}, []string{c.unit})
		}
	}
	about := arrow.NewMetadata([]string{"mptrace.schema"}, []string{strconv.Itoa(Schema)})
	schema := arrow.NewSchema(fields, &about)
	properties := parquet.NewWriterProperties(
		parquet.WithCreatedBy("mptrace"),
		parquet.WithCompression(compress.Codecs.Zstd),
		parquet.WithVersion(parquet.V2_LATEST),
	)
	out, err := pqarrow.NewFileWriter(schema, w, properties, pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		return err
	}
	builder := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer builder.Release()
	for first := true; first || len(rows) > 0; first = false {
		n := min(len(rows), rowsPerGroup)
		for i, c := range columns {
			field := builder.Field(i)
			field.Reserve(n)
			for k := range rows[:n] {
				c.add(field, &rows[k])
			}
		}
		rows = rows[n:]
		batch := builder.NewRecordBatch()
		err := out.Write(batch)
		batch.Release()
		if err != nil {
			return err
		}
	}
	return out.Close()
}

// atomically writes a file beside its place and renames it into it.
func atomically(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	w := bufio.NewWriterSize(f, 1<<16)
	if err = write(w); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err = w.Flush(); err != nil {
		return err
	}
	if err = f.Chmod(0o644); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
