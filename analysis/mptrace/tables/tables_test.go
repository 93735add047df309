package tables

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

func example() *Result {
	delay, first := 1.5, int64(7)
	return &Result{
		Schema:      Schema,
		Connections: []Connection{{Kind: "mptcp", Client: "10.64.1.2", BytesUp: 5, Interfaces: "wlan0"}, {ConnectionID: 1, Kind: "tcp"}},
		Subflows:    []Subflow{{Role: "initial", Established: true}, {SubflowID: 1, JoinDelayMS: &delay, FirstPayloadNS: &first, LastPayloadNS: &first}},
		Files:       []File{{Name: "a.pcapng", Packets: 3, TCP: 2, Interfaces: []string{"wlan0"}, Partial: true, Error: "cut short"}},
		Warnings:    Warnings{OptionsCut: 2},
	}
}

// TestColumns: the columns of both forms have the same names and order.
func TestColumns(t *testing.T) {
	check(t, Connection{}, names(connectionColumns))
	check(t, Subflow{}, names(subflowColumns))
}

func names[R any](columns []column[R]) []string {
	var all []string
	for _, c := range columns {
		all = append(all, c.name)
	}
	return all
}

func check(t *testing.T, row any, columns []string) {
	t.Helper()
	var tags []string
	for field := range reflect.TypeOf(row).Fields() {
		tags = append(tags, field.Tag.Get("json"))
	}
	if !reflect.DeepEqual(tags, columns) {
		t.Errorf("JSON %v\nParquet %v", tags, columns)
	}
}

func TestParquet(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	for _, dir := range []string{one, two} {
		if err := example().WriteParquet(filepath.Join(dir, "tables")); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{ConnectionsFile, SubflowsFile} {
		a, err := os.ReadFile(filepath.Join(one, "tables", name))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := os.ReadFile(filepath.Join(two, "tables", name))
		if !bytes.Equal(a, b) {
			t.Errorf("%s: the same rows made other bytes", name)
		}
	}
	if entries, _ := os.ReadDir(filepath.Join(one, "tables")); len(entries) != 2 {
		t.Errorf("%v", entries)
	}
	readBack(t, filepath.Join(one, "tables", SubflowsFile))
}

func readBack(t *testing.T, path string) {
	t.Helper()
	in, err := file.OpenParquetFile(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	reader, err := pqarrow.NewFileReader(in, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := reader.Schema()
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range subflowColumns {
		unit, _ := schema.Field(i).Metadata.GetValue("unit")
		if unit != c.unit || schema.Field(i).Name != c.name || schema.Field(i).Nullable != c.nullable {
			t.Errorf("%v, want %+v", schema.Field(i), c)
		}
	}
	if in.NumRows() != 2 || in.MetaData().GetCreatedBy() != "mptrace" || in.MetaData().Version() != parquet.V2_LATEST {
		t.Errorf("%d rows by %q", in.NumRows(), in.MetaData().GetCreatedBy())
	}
}

func TestNoRows(t *testing.T) {
	if err := (&Result{}).WriteParquet(t.TempDir()); err != nil {
		t.Error(err)
	}
}

func TestText(t *testing.T) {
	var b bytes.Buffer
	if err := example().WriteSummary(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"not read to its end: cut short", "options cut 2", "initial", "wlan0"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	b.Reset()
	if err := example().WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var back Result
	if err := json.Unmarshal(b.Bytes(), &back); err != nil || !reflect.DeepEqual(&back, example()) {
		t.Errorf("%v %+v", err, back)
	}
}
