package tables

import (
	"bytes"
	"encoding/json"
	"path/filepath"
)

// SourcesFile is written next to the tables and describes their input: the
// files, which of them could not be read to their end, and the warnings.
const SourcesFile = "sources.json"

// WriteSources writes [SourcesFile] into a directory. The file appears complete
// or not at all.
func WriteSources(dir string, files []File, warnings Warnings) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	about := struct {
		Schema   int      `json:"schema"`
		Partial  bool     `json:"partial"`
		Files    []File   `json:"files"`
		Warnings Warnings `json:"warnings"`
	}{Schema, false, files, warnings}
	for _, f := range files {
		about.Partial = about.Partial || f.Partial
	}
	if err := e.Encode(about); err != nil {
		return err
	}
	return WriteFile(filepath.Join(dir, SourcesFile), b.Bytes())
}
