package tables

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// draft is a file on its way: it stands beside its place under another name
// until it is whole, so that the file is there whole or not at all.
type draft struct {
	name string // that it will have
	f    *os.File
}

func newDraft(name string) (*draft, error) {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return nil, err
	}
	return &draft{name, f}, nil
}

// finish ends the writing.
func (d *draft) finish() error {
	if err := d.f.Chmod(0o644); err != nil {
		return err
	}
	return d.f.Close()
}

// place gives a finished draft its name, in place of what had it before.
func (d *draft) place() error { return os.Rename(d.f.Name(), d.name) }

// discard removes a draft that has not got its name; else it does nothing.
func (d *draft) discard() {
	_ = d.f.Close()
	_ = os.Remove(d.f.Name()) // not there any more when it has its name
}

// failed says which file it was; the name that the file has until then is of
// no interest.
func (d *draft) failed(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	if errors.As(err, &path) {
		err = path.Err
	} else if errors.As(err, &link) {
		err = link.Err
	}
	return fmt.Errorf("%s: %w", d.name, err)
}

// WriteFile writes a file that everybody may read, whole or not at all, in
// place of one with the same name.
func WriteFile(name string, content []byte) error {
	d, err := newDraft(name)
	if err != nil {
		return err
	}
	defer d.discard()
	if _, err := d.f.Write(content); err != nil {
		return d.failed(err)
	}
	if err := d.finish(); err != nil {
		return d.failed(err)
	}
	if err := d.place(); err != nil {
		return d.failed(err)
	}
	return nil
}
