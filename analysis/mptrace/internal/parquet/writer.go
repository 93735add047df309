package parquet

import (
	"io"

	"github.com/klauspost/compress/s2"
)

// Type is the type of a column.
type Type uint8

// Column types.
const (
	Bool Type = iota
	Int32
	Int64
	Float64
	String
	Timestamp // nanoseconds since 1970 UTC
)

// physical maps types to their numbers in the format.
var physical = [...]int64{Bool: 0, Int32: 1, Int64: 2, Float64: 5, String: 6, Timestamp: 2}

// Field describes a column.
type Field struct {
	Name     string
	Type     Type
	Optional bool // nulls are allowed
	Bounds   bool // write minimum and maximum per row group, for readers that filter rows; only for integers
}

// Writer writes a Parquet file.
type Writer struct {
	w       io.Writer
	fields  []Field
	at      int64 // number of bytes written
	rows    int64
	count   int    // number of row groups
	groups  thrift // their metadata for the footer
	page    thrift
	pool    *Pool
	refused []uint8 // by column: number of chunks to write without trying compression
}

const magic = "PAR1"

// Codecs of the format.
const (
	uncompressed = 0
	snappy       = 1
)

// NewWriter starts a file.
func NewWriter(w io.Writer, fields []Field, pool *Pool) (*Writer, error) {
	out := &Writer{w: w, pool: pool, fields: fields, refused: make([]uint8, len(fields))}
	out.groups.reset()
	return out, out.write([]byte(magic))
}

// Chunks returns a chunk for each column.
func (w *Writer) Chunks() []Chunk {
	chunks := make([]Chunk, len(w.fields))
	for i := range chunks {
		chunks[i].pool = w.pool
		if w.fields[i].Type == String {
			chunks[i].Words = &Words{}
		}
	}
	return chunks
}

func (w *Writer) write(b []byte) error {
	n, err := w.w.Write(b)
	w.at += int64(n)
	return err
}

// WriteGroup writes a row group and empties its chunks.
func (w *Writer) WriteGroup(chunks []Chunk) error {
	w.pool.writing.Lock()
	defer w.pool.writing.Unlock()
	begin, rows, size := w.at, int64(chunks[0].rows), int64(0)
	g := &w.groups
	g.open()
	g.list(1, thriftStruct, len(chunks))
	for i := range chunks {
		n, err := w.chunk(i, &chunks[i])
		if err != nil {
			return err
		}
		size += n
		chunks[i].reset()
	}
	g.i64(2, size)
	g.i64(3, rows)
	g.i64(5, begin)
	g.i64(6, w.at-begin)
	g.i16(7, int64(int16(w.count)))
	g.end()
	w.rows += rows
	w.count++
	return nil
}

// chunk writes the pages of a column and adds its metadata to the footer. It
// returns their uncompressed size.
func (w *Writer) chunk(i int, c *Chunk) (int64, error) {
	f, p := &w.fields[i], &w.pool.pages
	p.encode(f, c)
	dictionary, data, codec := w.compress(i)
	begin, headers := w.at, int64(0)
	if p.words > 0 {
		w.page.reset()
		w.page.i32(1, 2) // DICTIONARY_PAGE
		w.page.i32(2, int64(len(p.dictionary)))
		w.page.i32(3, int64(len(dictionary)))
		w.page.begin(7)
		w.page.i32(1, int64(p.words))
		w.page.i32(2, plain)
		w.page.end()
		w.page.end()
		headers += int64(len(w.page.b))
		if err := w.put(dictionary); err != nil {
			return 0, err
		}
	}
	at := w.at
	w.page.reset()
	w.page.i32(1, 0) // DATA_PAGE
	w.page.i32(2, int64(len(p.data)))
	w.page.i32(3, int64(len(data)))
	w.page.begin(5)
	w.page.i32(1, int64(c.rows))
	w.page.i32(2, p.encoding)
	w.page.i32(3, rle)
	w.page.i32(4, rle)
	w.page.end()
	w.page.end()
	headers += int64(len(w.page.b))
	if err := w.put(data); err != nil {
		return 0, err
	}
	size := headers + int64(len(p.dictionary)+len(p.data))
	w.describe(f, c, codec, begin, at, size)
	return size, nil
}

// put writes a page and its header.
func (w *Writer) put(page []byte) error {
	if err := w.write(w.page.b); err != nil {
		return err
	}
	return w.write(page)
}

// rest is the number of chunks that are written without trying compression
// after one that did not shrink by a quarter.
const rest = 15

// compress returns dictionary and data as they will be written, and the codec.
func (w *Writer) compress(i int) ([]byte, []byte, int64) {
	p := &w.pool.pages
	if w.refused[i] > 0 {
		w.refused[i]--
		return p.dictionary, p.data, uncompressed
	}
	w.pool.packed = grow(w.pool.packed[:0], s2.MaxEncodedLen(len(p.dictionary))+s2.MaxEncodedLen(len(p.data)))
	var dictionary []byte
	if p.words > 0 {
		dictionary = s2.EncodeSnappy(w.pool.packed, p.dictionary)
	}
	data := s2.EncodeSnappy(w.pool.packed[len(dictionary):], p.data)
	before, after := len(p.dictionary)+len(p.data), len(dictionary)+len(data)
	if after > before-before/4 {
		w.refused[i] = rest
		return p.dictionary, p.data, uncompressed
	}
	return dictionary, data, snappy
}
