package tables

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON writes the tables of the set, the files and the warnings as one
// JSON object, with one line per row.
func (r *Result) WriteJSON(w io.Writer, set Set) error {
	j := NewJSONWriter(w, Schema)
	for i, rows := range r.rows() {
		if set&catalog[i].set != 0 {
			rows(j, catalog[i].Name)
		}
	}
	if r.Filter != "" {
		j.Member("filter", r.Filter)
	}
	WriteList(j, "files", r.Files)
	j.Member("warnings", r.Warnings)
	return j.Close()
}

// rows returns the writers of the tables in the order of the catalog.
func (r *Result) rows() []func(*JSONWriter, string) {
	return []func(*JSONWriter, string){
		list(r.Connections), list(r.Subflows), list(r.Directions), list(r.RTT), list(r.Retransmissions), list(r.Reinjections),
		list(r.Bursts), list(r.Throughput), list(r.ACKSizes), list(r.Events), list(r.Points), list(r.Objects),
	}
}

func list[R any](rows []R) func(*JSONWriter, string) {
	return func(j *JSONWriter, name string) { WriteList(j, name, rows) }
}

// JSONWriter writes one JSON object. Close ends the object and returns the
// first error.
type JSONWriter struct {
	w       *bufio.Writer
	buffer  bytes.Buffer
	encoder *json.Encoder // writes into buffer
	err     error         // first error of encoding
}

// NewJSONWriter starts an object with the schema version of its rows.
func NewJSONWriter(w io.Writer, schema int) *JSONWriter {
	j := &JSONWriter{w: bufio.NewWriter(w)}
	j.encoder = json.NewEncoder(&j.buffer)
	j.encoder.SetEscapeHTML(false)
	fmt.Fprintf(j.w, "{\n\"schema\": %d", schema)
	return j
}

// Member writes a member on a separate line.
func (j *JSONWriter) Member(name string, v any) {
	fmt.Fprintf(j.w, ",\n%q: ", name)
	j.value(v)
}

// WriteList writes a member whose value is a list, with one line per row.
func WriteList[R any](j *JSONWriter, name string, rows []R) {
	fmt.Fprintf(j.w, ",\n%q: [", name)
	for i := range rows {
		if i > 0 {
			j.w.WriteByte(',')
		}
		j.w.WriteByte('\n')
		j.value(&rows[i])
	}
	j.w.WriteByte(']')
}

// Close ends the object and returns the first error of encoding or writing.
func (j *JSONWriter) Close() error {
	j.w.WriteString("\n}\n")
	if j.err != nil {
		return j.err
	}
	return j.w.Flush()
}

func (j *JSONWriter) value(v any) {
	j.buffer.Reset()
	if err := j.encoder.Encode(v); err != nil && j.err == nil {
		j.err = err
	}
	j.w.Write(bytes.TrimSpace(j.buffer.Bytes()))
}
