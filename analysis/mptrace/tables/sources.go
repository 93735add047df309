package tables

import (
	"bytes"
	"encoding/json"
	"path/filepath"
)

// SourcesFile is written next to the tables and describes their input: the
// filter, the files, which of them could not be read to their end, and warnings.
const SourcesFile = "sources.json"

// WriteSources writes [SourcesFile] into a directory. The file appears complete
// or not at all.
func WriteSources(dir string, r *Result) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	about := struct {
		Schema   int      `json:"schema"`
		Partial  bool     `json:"partial"`
		Filter   string   `json:"filter,omitempty"`
		Files    []File   `json:"files"`
		Warnings Warnings `json:"warnings"`
	}{Schema, false, r.Filter, r.Files, r.Warnings}
	for _, f := range r.Files {
		about.Partial = about.Partial || f.Partial
	}
	if err := e.Encode(about); err != nil {
		return err
	}
	return WriteFile(filepath.Join(dir, SourcesFile), b.Bytes())
}
