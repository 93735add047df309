package parquet

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// value is a bit pattern, or a word for string columns.
type value struct {
	bits uint64
	word string
	null bool
}

// put appends rows to a column, in batches of random size.
func put(c *Chunk, f *Field, rows []value, random *rand.Rand) {
	for len(rows) > 0 {
		n := min(len(rows), 1+random.IntN(Batch))
		var values []uint64
		var known uint64
		for i, row := range rows[:n] {
			if row.null {
				continue
			}
			known |= 1 << i
			if f.Type == String {
				row.bits = c.Words.Of(row.word)
			}
			values = append(values, row.bits)
		}
		if f.Optional {
			c.AppendKnown(values, known, n)
		} else {
			c.Append(values)
		}
		rows = rows[n:]
	}
}

// write returns a file of columns with equal numbers of rows, in row groups of
// the given size.
func write(t *testing.T, fields []Field, columns [][]value, group int, random *rand.Rand) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, fields, &Pool{})
	if err != nil {
		t.Fatal(err)
	}
	chunks := w.Chunks()
	for at := 0; at < len(columns[0]); at += group {
		for i := range chunks {
			put(&chunks[i], &fields[i], columns[i][at:min(at+group, len(columns[i]))], random)
		}
		if err := w.WriteGroup(chunks); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close("test", []Note{{"key", "text"}, {"empty", ""}}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// check reads a file with the reader of another library.
func check(t *testing.T, b []byte, fields []Field, columns [][]value) {
	t.Helper()
	in, err := file.NewParquetReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	reader, err := pqarrow.NewFileReader(in, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	content, err := reader.ReadTable(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer content.Release()
	for i := range fields {
		if got := content.Schema().Field(i); got.Name != fields[i].Name || got.Nullable != fields[i].Optional {
			t.Errorf("column %d is %v", i, got)
		}
		row := 0
		for _, chunk := range content.Column(i).Data().Chunks() {
			for k := range chunk.Len() {
				if got := read(chunk, k); got != columns[i][row] {
					t.Fatalf("%s, row %d of %d: %+v, want %+v", fields[i].Name, row, len(columns[i]), got, columns[i][row])
				}
				row++
			}
		}
		if row != len(columns[i]) {
			t.Fatalf("%s: %d rows, want %d", fields[i].Name, row, len(columns[i]))
		}
	}
}

func read(a arrow.Array, i int) value {
	if a.IsNull(i) {
		return value{null: true}
	}
	switch a := a.(type) {
	case *array.Int32:
		return value{bits: uint64(a.Value(i))}
	case *array.Int64:
		return value{bits: uint64(a.Value(i))}
	case *array.Float64:
		return value{bits: math.Float64bits(a.Value(i))}
	case *array.Boolean:
		if a.Value(i) {
			return value{bits: 1}
		}
		return value{}
	case *array.String:
		return value{word: strings.Clone(a.Value(i))}
	}
	return value{word: fmt.Sprintf("%T", a)}
}

// shapes are the sequences of numbers in a column.
var shapes = map[string]func(i int, r *rand.Rand) uint64{
	"equal":       func(int, *rand.Rand) uint64 { return 7 },
	"late change": func(i int, _ *rand.Rand) uint64 { return uint64(i / 1500) },
	"alternating": func(i int, _ *rand.Rand) uint64 { return uint64(i % 2) },
	"runs":        func(i int, _ *rand.Rand) uint64 { return uint64(i / 37) },
	"counter":     func(i int, _ *rand.Rand) uint64 { return uint64(i) },
	"clock":       func(i int, r *rand.Rand) uint64 { return 1e18 + uint64(i)*1e5 + r.Uint64N(1e4) },
	"falling":     func(i int, _ *rand.Rand) uint64 { return uint64(-i * 1000) },
	"few":         func(_ int, r *rand.Rand) uint64 { return r.Uint64N(20) },
	"many":        func(_ int, r *rand.Rand) uint64 { return r.Uint64N(2500) },
	"any":         func(_ int, r *rand.Rand) uint64 { return r.Uint64() },
	"any width":   func(i int, r *rand.Rand) uint64 { return r.Uint64() >> (uint(i/40) % 64) },
	"extremes": func(_ int, r *rand.Rand) uint64 {
		return [...]uint64{0, 1 << 63, 1<<63 - 1, math.MaxUint64, 1 << 31, 1<<31 - 1, math.Float64bits(math.NaN())}[r.IntN(7)]
	},
}

// nulls are the patterns of rows without a value.
var nulls = map[string]func(i int, r *rand.Rand) bool{
	"known":     func(int, *rand.Rand) bool { return false },
	"null":      func(int, *rand.Rand) bool { return true },
	"some null": func(_ int, r *rand.Rand) bool { return r.IntN(3) == 0 },
	"one null":  func(i int, _ *rand.Rand) bool { return i == 0 },
	"then null": func(i int, _ *rand.Rand) bool { return i >= 70 },
}

// fit converts a bit pattern into a value of a type.
func fit(t Type, v uint64) value {
	switch t {
	case Bool:
		return value{bits: v & 1}
	case Int32:
		return value{bits: uint64(int32(v))}
	case String:
		return value{word: strconv.FormatUint(v, 10)[1:]} // one with a single digit is empty
	}
	return value{bits: v}
}

// TestReadsBack: all types, shapes and null patterns are read back, for
// different numbers of rows and row groups.
func TestReadsBack(t *testing.T) {
	for shape, next := range shapes {
		t.Run(shape, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			for _, rows := range []int{1, 2, 31, 32, 33, 64, 127, 128, 129, 1000, 1024, 1025, 5000} {
				var fields []Field
				var columns [][]value
				add := func(f Field, null func(int, *rand.Rand) bool) {
					column := make([]value, rows)
					for i := range column {
						if column[i] = fit(f.Type, next(i, random)); null(i, random) {
							column[i] = value{null: true}
						}
					}
					fields, columns = append(fields, f), append(columns, column)
				}
				for kind := Bool; kind <= String; kind++ {
					add(Field{Name: fmt.Sprint("all", kind), Type: kind, Bounds: kind == Int32 || kind == Int64}, nulls["known"])
					for name, null := range nulls {
						add(Field{Name: fmt.Sprint(name, kind), Type: kind, Optional: true}, null)
					}
				}
				for _, group := range []int{rows, 1 + rows/3} {
					check(t, write(t, fields, columns, group, random), fields, columns)
				}
			}
		})
	}
}

// TestLargeGroups: a column can have more distinct values than a dictionary.
func TestLargeGroups(t *testing.T) {
	const rows = 60_000
	random := rand.New(rand.NewPCG(3, 4))
	fields := []Field{{Name: "few", Type: Float64}, {Name: "many", Type: Float64}, {Name: "words", Type: String}, {Name: "later", Type: String}}
	columns := make([][]value, len(fields))
	for i := range rows {
		columns[0] = append(columns[0], value{bits: random.Uint64N(manyValues / 2)})
		columns[1] = append(columns[1], value{bits: random.Uint64N(manyValues * 2)})
		columns[2] = append(columns[2], value{word: fmt.Sprint("word ", i)})
		columns[3] = append(columns[3], value{word: fmt.Sprint("word ", i%2000)})
	}
	check(t, write(t, fields, columns, rows, random), fields, columns)
}

// TestWordsByContent: the memory address of a word does not matter.
func TestWordsByContent(t *testing.T) {
	for _, different := range []int{1, 3, 100, 3000} {
		var shared, copied Words
		words := make([]string, different)
		for i := range words {
			words[i] = fmt.Sprint(i)
		}
		for i := range 5000 {
			word := words[i%different]
			if a, b := shared.Of(word), copied.Of(strings.Clone(word)); a != b {
				t.Fatalf("%d different words: %d and %d", different, a, b)
			}
		}
		if shared.size != copied.size || shared.many != (different > manyWords) {
			t.Errorf("%d different words: %d and %d bytes, too many: %v", different, shared.size, copied.size, shared.many)
		}
	}
}

// TestSmallChunks: mostly equal values need nearly no space.
func TestSmallChunks(t *testing.T) {
	const rows = 10_000
	random := rand.New(rand.NewPCG(5, 6))
	for name, most := range map[string]int{"equal": 200, "late change": 900, "runs": 2000, "counter": 700, "few": 9000} {
		for kind := Int32; kind <= Int64; kind++ {
			fields, columns := []Field{{Name: "x", Type: kind}}, make([][]value, 1)
			for i := range rows {
				columns[0] = append(columns[0], fit(kind, shapes[name](i, random)))
			}
			if size := len(write(t, fields, columns, rows, random)) - 200; size > most {
				t.Errorf("%s: %d bytes", name, size)
			}
		}
	}
}

// TestBounds: the footer has the smallest and largest value and the number of
// nulls of each row group.
func TestBounds(t *testing.T) {
	fields := []Field{{Name: "a", Type: Int32, Bounds: true}, {Name: "b", Type: Int64, Bounds: true, Optional: true}, {Name: "c", Type: Int64}}
	var columns [3][]value
	for _, v := range []int64{5, -7, 3, 9, 9, 9} {
		columns[0] = append(columns[0], value{bits: uint64(v)})
		columns[1] = append(columns[1], value{bits: uint64(v << 40)})
		columns[2] = append(columns[2], value{bits: uint64(v)})
	}
	columns[1][1] = value{null: true}
	in, err := file.NewParquetReader(bytes.NewReader(write(t, fields, columns[:], 3, rand.New(rand.NewPCG(0, 0)))))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for group, want := range [][4]int64{{-7, 5, 3 << 40, 5 << 40}, {9, 9, 9 << 40, 9 << 40}} {
		var got [4]int64
		for i := range 2 {
			chunk, err := in.MetaData().RowGroup(group).ColumnChunk(i)
			if err != nil {
				t.Fatal(err)
			}
			stats, err := chunk.Statistics()
			if err != nil || !stats.HasMinMax() || stats.NullCount() != int64(i*(1-group)) {
				t.Fatalf("group %d, column %d: %v %v", group, i, stats, err)
			}
			switch stats := stats.(type) {
			case *metadata.Int32Statistics:
				got[0], got[1] = int64(stats.Min()), int64(stats.Max())
			case *metadata.Int64Statistics:
				got[2], got[3] = stats.Min(), stats.Max()
			}
		}
		if got != want {
			t.Errorf("group %d: %v, want %v", group, got, want)
		}
	}
	chunk, err := in.MetaData().RowGroup(0).ColumnChunk(2)
	if err != nil {
		t.Fatal(err)
	}
	if stats, err := chunk.Statistics(); err == nil && stats != nil && stats.HasMinMax() {
		t.Error("a column has bounds that nobody asked for")
	}
}

// TestNotes: the footer has the notes and the creator, even without rows.
func TestNotes(t *testing.T) {
	in, err := file.NewParquetReader(bytes.NewReader(write(t, []Field{{Name: "x", Type: Bool}}, make([][]value, 1), 1, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	notes := in.MetaData().KeyValueMetadata()
	if key, empty := notes.FindValue("key"), notes.FindValue("empty"); key == nil || *key != "text" || empty == nil || *empty != "" {
		t.Errorf("%v", notes)
	}
	if in.MetaData().GetCreatedBy() != "test" || in.NumRows() != 0 {
		t.Errorf("by %q, %d rows", in.MetaData().GetCreatedBy(), in.NumRows())
	}
}

// TestErrorOfTheFile: every failed write is reported.
func TestErrorOfTheFile(t *testing.T) {
	fields := []Field{{Name: "x", Type: Int64}, {Name: "word", Type: String}}
	rows := []value{{bits: 1, word: "a"}, {bits: 2, word: "b"}, {bits: 9, word: "a"}}
	for limit := range 1000 {
		full := &short{left: limit}
		w, err := NewWriter(full, fields, &Pool{})
		if err == nil {
			chunks := w.Chunks()
			for i := range chunks {
				put(&chunks[i], &fields[i], rows, rand.New(rand.NewPCG(0, 0)))
			}
			err = w.WriteGroup(chunks)
		}
		if err == nil {
			err = w.Close("test", nil)
		}
		if err == nil {
			if limit < 200 || full.failed {
				t.Fatalf("%d bytes are enough", limit)
			}
			return
		}
	}
	t.Error("1000 bytes are not enough")
}

// short is a writer that accepts a limited number of bytes.
type short struct {
	left   int
	failed bool
}

func (s *short) Write(b []byte) (int, error) {
	if s.left -= len(b); s.left < 0 {
		s.failed = true
		return 0, fmt.Errorf("no more room")
	}
	return len(b), nil
}

// TestPacked: 32 values of width w need w words of four bytes, and every bit is
// in the place that the format defines.
func TestPacked(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for width := range uint(65) {
		var values [miniBlock]uint64
		for i := range values {
			values[i] = random.Uint64()
			if width < 64 {
				values[i] &= 1<<width - 1
			}
		}
		values[3] = max(values[3], 1<<width-1) // all bits set
		b := appendPacked(nil, &values, 0, width)
		if len(b) != int(4*width) {
			t.Fatalf("width %d: %d bytes", width, len(b))
		}
		for i, v := range values {
			for bit := range width {
				at := uint(i)*width + bit
				if uint64(b[at/8]>>(at%8)&1) != v>>bit&1 {
					t.Fatalf("width %d: bit %d of value %d", width, bit, i)
				}
			}
		}
		if n := bits.Len64(values[3]); n != int(width) {
			t.Errorf("%d bits for width %d", n, width)
		}
	}
}
