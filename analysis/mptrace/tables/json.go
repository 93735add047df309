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
	j := &jsonWriter{w: bufio.NewWriter(w)}
	j.encoder = json.NewEncoder(&j.buffer)
	j.encoder.SetEscapeHTML(false)
	fmt.Fprintf(j.w, "{\n\"schema\": %d", Schema)
	for i, rows := range r.rows() {
		if set&catalog[i].set != 0 {
			rows(j, catalog[i].Name)
		}
	}
	each(r.Files)(j, "files")
	j.w.WriteString(",\n\"warnings\": ")
	j.value(r.Warnings)
	j.w.WriteString("\n}\n")
	if j.err != nil {
		return j.err
	}
	return j.w.Flush()
}

// rows are the tables in the order of the catalog.
func (r *Result) rows() []func(*jsonWriter, string) {
	return []func(*jsonWriter, string){
		each(r.Connections), each(r.Subflows), each(r.Directions), each(r.RTT), each(r.Retransmissions), each(r.Reinjections),
		each(r.Bursts), each(r.Throughput), each(r.ACKSizes), each(r.Events), each(r.Points), each(r.Objects),
	}
}

type jsonWriter struct {
	w       *bufio.Writer
	buffer  bytes.Buffer
	encoder *json.Encoder // into buffer
	err     error
}

func (j *jsonWriter) value(v any) {
	j.buffer.Reset()
	if err := j.encoder.Encode(v); err != nil && j.err == nil {
		j.err = err
	}
	j.w.Write(bytes.TrimSpace(j.buffer.Bytes()))
}

// each writes a member whose value is a list.
func each[R any](rows []R) func(*jsonWriter, string) {
	return func(j *jsonWriter, name string) {
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
}
