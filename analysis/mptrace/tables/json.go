package tables

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON writes the tables of the set, the files and the warnings as one
// JSON object, with a line for each row.
func (r *Result) WriteJSON(w io.Writer, set Set) error {
	j := NewJSONWriter(w, Schema)
	for i, rows := range r.rows() {
		if set&catalog[i].set != 0 {
			rows(j, catalog[i].Name)
		}
	}
	WriteList(j, "files", r.Files)
	j.Member("warnings", r.Warnings)
	return j.Close()
}

// rows are the tables in the order of the catalog.
func (r *Result) rows() []func(*JSONWriter, string) {
	return []func(*JSONWriter, string){
		list(r.Connections), list(r.Subflows), list(r.Directions), list(r.RTT), list(r.Retransmissions), list(r.Reinjections),
		list(r.Bursts), list(r.Throughput), list(r.ACKSizes), list(r.Events), list(r.Points), list(r.Objects),
	}
}

func list[R any](rows []R) func(*JSONWriter, string) {
	return func(j *JSONWriter, name string) { WriteList(j, name, rows) }
}

// JSONWriter writes one JSON object. It ends with Close, which tells of errors.
type JSONWriter struct {
	w       *bufio.Writer
	buffer  bytes.Buffer
	encoder *json.Encoder // into buffer
	err     error         // of encoding, the first
}

// NewJSONWriter begins an object with the version of its rows.
func NewJSONWriter(w io.Writer, schema int) *JSONWriter {
	j := &JSONWriter{w: bufio.NewWriter(w)}
	j.encoder = json.NewEncoder(&j.buffer)
	j.encoder.SetEscapeHTML(false)
	fmt.Fprintf(j.w, "{\n\"schema\": %d", schema)
	return j
}

// Member writes a member on a line of its own.
func (j *JSONWriter) Member(name string, v any) {
	fmt.Fprintf(j.w, ",\n%q: ", name)
	j.value(v)
}

// WriteList writes a member whose value is a list, with a line for each row.
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

// Close ends the object. The error is the first one, of encoding or writing.
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
