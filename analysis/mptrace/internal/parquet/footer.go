package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// describe adds the metadata of a column chunk to the footer.
func (w *Writer) describe(f *Field, c *Chunk, codec, begin, data, size int64) {
	g, p := &w.groups, &w.pool.pages
	g.open()
	g.i64(2, begin)
	g.begin(3)
	g.i32(1, physical[f.Type])
	encodings := []int64{rle, p.encoding}
	if p.words > 0 {
		encodings = append(encodings, plain)
	}
	g.list(2, thriftI32, len(encodings))
	for _, e := range encodings {
		g.b = binary.AppendVarint(g.b, e)
	}
	g.list(3, thriftBinary, 1)
	g.bareText(f.Name)
	g.i32(4, codec)
	g.i64(5, int64(c.rows))
	g.i64(6, size)
	g.i64(7, w.at-begin)
	g.i64(9, data)
	if p.words > 0 {
		g.i64(11, begin)
	}
	g.begin(12)
	g.i64(3, int64(c.nulls()))
	if f.Bounds && c.n > 0 {
		least, most := c.bounds()
		g.text(5, string(appendBits(nil, f.Type, uint64(most))))
		g.text(6, string(appendBits(nil, f.Type, uint64(least))))
	}
	g.end()
	g.end()
	g.end()
}

// Note is a pair of key and value in the footer.
type Note struct{ Key, Value string }

// Close writes the footer.
func (w *Writer) Close(createdBy string, notes []Note) error {
	begin := w.at
	var t thrift
	t.reset()
	t.i32(1, 2) // version
	w.schema(&t)
	t.i64(3, w.rows)
	t.list(4, thriftStruct, w.count)
	if err := errors.Join(w.write(t.b), w.write(w.groups.b)); err != nil {
		return err
	}
	t.b = t.b[:0]
	t.list(5, thriftStruct, len(notes))
	for _, n := range notes {
		t.open()
		t.text(1, n.Key)
		t.text(2, n.Value)
		t.end()
	}
	t.text(6, createdBy)
	t.list(7, thriftStruct, len(w.fields))
	for range w.fields {
		t.open() // bounds use the order of the type
		t.begin(1)
		t.end()
		t.end()
	}
	t.end()
	size := w.at - begin + int64(len(t.b))
	if size > math.MaxInt32 {
		return fmt.Errorf("the file has too many row groups (%d)", w.count)
	}
	t.b = binary.LittleEndian.AppendUint32(t.b, uint32(size))
	return w.write(append(t.b, magic...))
}

func (w *Writer) schema(t *thrift) {
	t.list(2, thriftStruct, 1+len(w.fields))
	t.open()
	t.text(4, "schema")
	t.i32(5, int64(len(w.fields)))
	t.end()
	for i := range w.fields {
		f := &w.fields[i]
		t.open()
		t.i32(1, physical[f.Type])
		repetition := int64(0)
		if f.Optional {
			repetition = 1
		}
		t.i32(3, repetition)
		t.text(4, f.Name)
		switch f.Type {
		case String:
			t.i32(6, 0) // UTF8
			t.begin(10)
			t.begin(1)
			t.end()
			t.end()
		case Timestamp:
			t.begin(10)
			t.begin(8)
			t.field(1, thriftTrue) // in UTC
			t.begin(2)
			t.begin(3) // nanoseconds
			t.end()
			t.end()
			t.end()
			t.end()
		}
		t.end()
	}
}
