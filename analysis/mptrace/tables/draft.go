package tables

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// draft is a file that is being written. It has a temporary name in the target
// directory until it is complete, so that the file appears complete or not at
// all.
type draft struct {
	name string // final name
	f    *os.File
}

func newDraft(name string) (*draft, error) {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return nil, err
	}
	return &draft{name, f}, nil
}

// finish sets the permissions and closes the file.
func (d *draft) finish() error {
	if err := d.f.Chmod(0o644); err != nil {
		return err
	}
	return d.f.Close()
}

// place renames a finished draft to its final name and replaces an older file.
func (d *draft) place() error { return os.Rename(d.f.Name(), d.name) }

// discard removes a draft that was not placed; otherwise it does nothing.
func (d *draft) discard() {
	_ = d.f.Close()
	_ = os.Remove(d.f.Name()) // fails harmlessly after place
}

// failed returns an error with the final name of the file instead of its
// temporary one.
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

// WriteFile writes a file that every user may read. The file appears complete
// or not at all and replaces an older one.
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
