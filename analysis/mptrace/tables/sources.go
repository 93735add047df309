package tables

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// SourcesFile stands beside the tables and says what they were made of: the
// files, which of them were not readable to their end, and the warnings.
const SourcesFile = "sources.json"

// WriteSources writes [SourcesFile] into a directory, whole or not at all.
func WriteSources(dir string, files []File, warnings Warnings) (err error) {
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
	name := filepath.Join(dir, SourcesFile)
	f, err := os.CreateTemp(dir, "."+SourcesFile+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
			err = fmt.Errorf("%s: %w", name, err)
		}
	}()
	if _, err = f.Write(b.Bytes()); err != nil {
		return err
	}
	if err = f.Chmod(0o644); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
