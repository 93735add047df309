package tables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// fill sets every field of a row to a different value; every third Maybe is
// unknown.
func fill(row any, seed int) {
	v := reflect.ValueOf(row).Elem()
	for i := range v.NumField() {
		field, n := v.Field(i), seed*1000+i
		if field.Kind() == reflect.Struct {
			if n%3 == 0 {
				continue
			}
			field.Field(1).SetBool(true)
			field = field.Field(0)
		}
		switch field.Kind() {
		case reflect.Int32, reflect.Int64:
			field.SetInt(int64(n - 500))
		case reflect.Float64:
			field.SetFloat(float64(n) / 8)
		case reflect.Bool:
			field.SetBool(n%2 == 0)
		case reflect.String:
			field.SetString(fmt.Sprint("word ", n%50))
		}
	}
}

// fillAll adds rows to every table.
func fillAll(s *Sink, rows int) {
	for i := range rows {
		add(s.Connections, i)
		add(s.Subflows, i)
		add(s.Directions, i)
		add(s.RTT, i)
		add(s.Retransmissions, i)
		add(s.Reinjections, i)
		add(s.Bursts, i)
		add(s.Throughput, i)
		add(s.ACKSizes, i)
		add(s.Events, i)
		add(s.Points, i)
		add(s.Objects, i)
	}
}

func add[R any](s *Stream[R], seed int) {
	var row R
	fill(&row, seed)
	s.Add(row)
}

// TestParquetReadsBack: every value, null and note of every table is read back
// from the file.
func TestParquetReadsBack(t *testing.T) {
	dir := t.TempDir()
	p, err := NewParquetSink(dir, ParquetOptions{Keep: All})
	if err != nil {
		t.Fatal(err)
	}
	fillAll(p.Sink(), 300)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	s := p.Sink()
	for i, rows := range []any{
		s.Connections.Rows(), s.Subflows.Rows(), s.Directions.Rows(), s.RTT.Rows(), s.Retransmissions.Rows(), s.Reinjections.Rows(),
		s.Bursts.Rows(), s.Throughput.Rows(), s.ACKSizes.Rows(), s.Events.Rows(), s.Points.Rows(), s.Objects.Rows(),
	} {
		readBack(t, filepath.Join(dir, catalog[i].Name+".parquet"), &catalog[i], reflect.ValueOf(rows))
	}
}

// TestEqualValuesReadBack: columns with a long run of equal values that ends at
// any place.
func TestEqualValuesReadBack(t *testing.T) {
	dir := t.TempDir()
	p, err := NewParquetSink(dir, ParquetOptions{Tables: TableDirections, Keep: TableDirections})
	if err != nil {
		t.Fatal(err)
	}
	out := p.Sink().Directions
	for i := range 1000 {
		row := out.Next()
		if *row != (Direction{}) {
			t.Fatalf("row %d: %+v", i, *row)
		}
		fill(row, 7)
		if i%170 == 169 {
			fill(row, i)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	readBack(t, filepath.Join(dir, "directions.parquet"), &catalog[2], reflect.ValueOf(out.Rows()))
}

func readBack(t *testing.T, path string, about *description, rows reflect.Value) {
	t.Helper()
	in, err := file.OpenParquetFile(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if in.MetaData().GetCreatedBy() != "mptrace" || in.MetaData().Version() != parquet.V2_LATEST {
		t.Errorf("%s: by %q, version %v", about.Name, in.MetaData().GetCreatedBy(), in.MetaData().Version())
	}
	reader, err := pqarrow.NewFileReader(in, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	content, err := reader.ReadTable(context.Background())
	if err != nil {
		t.Fatalf("%s: %v", about.Name, err)
	}
	defer content.Release()
	if version := in.MetaData().KeyValueMetadata().FindValue("mptrace.schema"); version == nil || *version != fmt.Sprint(Schema) {
		t.Errorf("%s: version %v", about.Name, version)
	}
	if int(content.NumRows()) != rows.Len() || int(content.NumCols()) != len(about.Columns) {
		t.Fatalf("%s: %d rows of %d columns", about.Name, content.NumRows(), content.NumCols())
	}
	for i, c := range about.Columns {
		field := content.Schema().Field(i)
		unit, _ := field.Metadata.GetValue("unit")
		doc, _ := field.Metadata.GetValue("doc")
		if field.Name != c.Name || unit != c.Unit || doc != c.Doc || field.Nullable != c.Nullable {
			t.Errorf("%s: %v, want %+v", about.Name, field, c)
		}
		row := 0
		for _, chunk := range content.Column(i).Data().Chunks() {
			for k := range chunk.Len() {
				if got, want := valueAt(chunk, k), rows.Index(row).Field(i).Interface(); !reflect.DeepEqual(got, known(want)) {
					t.Fatalf("%s.%s, row %d: %v, want %v", about.Name, c.Name, row, got, want)
				}
				row++
			}
		}
	}
}

// valueAt returns a value, or nil for null.
func valueAt(a arrow.Array, i int) any {
	if a.IsNull(i) {
		return nil
	}
	switch a := a.(type) {
	case *array.Int32:
		return a.Value(i)
	case *array.Int64:
		return a.Value(i)
	case *array.Timestamp:
		return int64(a.Value(i))
	case *array.Float64:
		return a.Value(i)
	case *array.Boolean:
		return a.Value(i)
	case *array.String:
		return a.Value(i)
	}
	return fmt.Sprintf("%T", a)
}

// known returns the value of a Maybe, or nil.
func known(v any) any {
	m := reflect.ValueOf(v)
	if m.Kind() != reflect.Struct {
		return v
	}
	if !m.Field(1).Bool() {
		return nil
	}
	return m.Field(0).Interface()
}

// TestSameRowsMakeSameBytes also checks that only the tables remain in the
// directory, whatever it contained before.
func TestSameRowsMakeSameBytes(t *testing.T) {
	one, two := filepath.Join(t.TempDir(), "new", "tables"), t.TempDir()
	if err := os.WriteFile(filepath.Join(two, "rtt.parquet"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{one, two} {
		p, err := NewParquetSink(dir, ParquetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		fillAll(p.Sink(), 1000)
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		p.Abort() // after Close it does nothing
	}
	for _, name := range Set(All).Names() {
		a, err := os.ReadFile(filepath.Join(one, name+".parquet"))
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := os.ReadFile(filepath.Join(two, name+".parquet")); !bytes.Equal(a, b) {
			t.Errorf("%s: the same rows made other bytes", name)
		}
	}
	for _, dir := range []string{one, two} {
		if entries, _ := os.ReadDir(dir); len(entries) != len(catalog) {
			t.Errorf("%v", entries)
		}
	}
}

func TestTablesWithoutRowsAreFilesWithoutRows(t *testing.T) {
	dir := t.TempDir()
	p, err := NewParquetSink(dir, ParquetOptions{Tables: TableSubflows | TableObjects})
	if err != nil {
		t.Fatal(err)
	}
	p.Sink().Connections.Add(Connection{}) // the table is not wanted
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 2 {
		t.Errorf("%v", entries)
	}
	readBack(t, filepath.Join(dir, "subflows.parquet"), &catalog[1], reflect.ValueOf([]Subflow{}))
}

func TestAbortLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	p, err := NewParquetSink(dir, ParquetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	fillAll(p.Sink(), 100)
	p.Abort()
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("%v", entries)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("Close after Abort: %v", entries)
	}
}

// TestErrorOfWriting: if a file cannot be written, the error names it, and the
// directory is unchanged.
func TestErrorOfWriting(t *testing.T) {
	for _, rows := range []int{1, 200_000} { // found at Close, and before
		dir := t.TempDir()
		p, err := NewParquetSink(dir, ParquetOptions{Tables: TablePoints})
		if err != nil {
			t.Fatal(err)
		}
		p.files[0].f.Close() // same effect as a full disk
		for i := range rows {
			p.Sink().Points.Add(Point{TimeNS: int64(i) * int64(i) % 7919 * 7919})
		}
		if (p.Err() != nil) != (rows > 1) {
			t.Errorf("%d rows: Err %v", rows, p.Err())
		}
		err = p.Close()
		if err == nil || !strings.HasPrefix(err.Error(), filepath.Join(dir, "points.parquet")+": ") || !errors.Is(err, os.ErrClosed) {
			t.Errorf("%d rows: %v", rows, err)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 0 {
			t.Errorf("%d rows: %v", rows, entries)
		}
	}
}

func TestErrorOfTheDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewParquetSink(path, ParquetOptions{}); err == nil {
		t.Error("a file was taken for a directory")
	}
	if os.Geteuid() != 0 {
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		if _, err := NewParquetSink(dir, ParquetOptions{}); err == nil {
			t.Error("a directory without permission was taken")
		}
	}
}

// TestRowGroupsEnd: a table is written while it grows, and the waiting rows and
// bytes are bounded.
func TestRowGroupsEnd(t *testing.T) {
	dir := t.TempDir()
	p, err := NewParquetSink(dir, ParquetOptions{Tables: TablePoints | TableObjects})
	if err != nil {
		t.Fatal(err)
	}
	url := strings.Repeat("x", 1000)
	add := func(groups int) uint64 {
		for i := range groups * groupRows {
			p.Sink().Points.Add(Point{ConnectionID: int32(i)})
			if i%10 == 0 {
				p.Sink().Objects.Add(Object{ConnectionID: int32(i), URL: fmt.Sprint(url, i)})
			}
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	if before, after := add(1), add(3); after > before+4*groupBytes {
		t.Errorf("from %d to %d bytes are held", before, after)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	for name, most := range map[string]int64{"points": groupRows, "objects": 2 * groupBytes / 1000} {
		in, err := file.OpenParquetFile(filepath.Join(dir, name+".parquet"), false)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		if in.NumRowGroups() < 3 {
			t.Errorf("%s: %d row groups", name, in.NumRowGroups())
		}
		for i := range in.NumRowGroups() {
			if n := in.RowGroup(i).NumRows(); n > most {
				t.Errorf("%s: a row group of %d rows", name, n)
			}
		}
	}
}

// TestWriteRows: a separate table is written like the others.
func TestWriteRows(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	rows := []Throughput{{ConnectionID: 1, Bytes: 5, Level: LevelTCP}, {ConnectionID: 2, DurationS: 0.5}}
	if err := WriteRows(dir, "throughput", "how fast it was", rows); err != nil {
		t.Fatal(err)
	}
	about := describe[Throughput](0, "throughput", "")
	readBack(t, filepath.Join(dir, "throughput.parquet"), &about, reflect.ValueOf(rows))
	if err := WriteRows(dir, "speed", "how fast it was", rows); err == nil || !strings.Contains(err.Error(), "table speed has no Arrow schema") {
		t.Errorf("a table without schema: %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%v", entries)
	}
}
