package spool

import (
	"os"
	"path/filepath"
)

// Maximum number of buffered bytes: per file, and for all files of a directory.
const (
	fileLimit = 64 << 10
	allLimit  = 32 << 20
)

// Dir is a directory in which files are written. It is not safe for concurrent
// use.
type Dir struct {
	path  string
	files map[*File]struct{} // with buffered bytes
	bytes int                // buffered
	err   error              // the first error; nothing is written after it
}

// File is a file of a [Dir]. It appears when it is first written or closed, and
// replaces an older file of the same name.
type File struct {
	dir     *Dir
	name    string
	waiting []byte
	begun   bool
}

// New creates the directory if it is missing.
func New(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, err
	}
	return &Dir{path: path, files: make(map[*File]struct{})}, nil
}

// File starts a file.
func (d *Dir) File(name string) *File { return &File{dir: d, name: name} }

// Write appends to the file. [Dir.Close] returns the errors.
func (f *File) Write(b []byte) (int, error) {
	d := f.dir
	if d.err != nil || len(b) == 0 {
		return len(b), nil
	}
	if len(f.waiting) == 0 {
		d.files[f] = struct{}{}
	}
	f.waiting = append(f.waiting, b...)
	d.bytes += len(b)
	switch {
	case d.bytes > allLimit:
		for each := range d.files {
			each.flush()
		}
	case len(f.waiting) > fileLimit:
		f.flush()
	}
	return len(b), nil
}

// Close writes the buffer. The caller can then drop the file or continue
// writing.
func (f *File) Close() {
	if len(f.waiting) > 0 || !f.begun {
		f.flush()
	}
}

func (f *File) flush() {
	d := f.dir
	d.bytes -= len(f.waiting)
	delete(d.files, f)
	if d.err == nil {
		d.err = f.append()
	}
	f.waiting = nil
}

func (f *File) append() error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if !f.begun {
		flags |= os.O_TRUNC
		f.begun = true
	}
	out, err := os.OpenFile(filepath.Join(f.dir.path, f.name), flags, 0o644)
	if err != nil {
		return err
	}
	if _, err := out.Write(f.waiting); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}

// Err returns the first error so far.
func (d *Dir) Err() error { return d.err }

// Close writes the buffers of all files and returns the first error.
func (d *Dir) Close() error {
	for f := range d.files {
		f.flush()
	}
	return d.err
}
