package tables

import "os"

// WriteRows writes rows that have the struct tags of this package to
// NAME.parquet in a directory. The file appears complete or not at all. Use it
// for tables that are not part of a [Sink].
func WriteRows[R any](dir, name, doc string, rows []R) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	about := describe[R](0, name, doc)
	p := &ParquetSink{dir: dir}
	defer p.Abort()
	var stream *Stream[R]
	if err := p.begin(of(&stream).open(), &about); err != nil {
		return err
	}
	for _, row := range rows {
		stream.Add(row)
	}
	return p.Close()
}
