package store

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// recover finds the stored batches of a device.
func (d *device) recover(report *Report) error {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return err
	}
	type day struct {
		name, day string
		segment   int
	}
	var days []day
	for _, entry := range entries {
		if m := dayForm.FindStringSubmatch(entry.Name()); m != nil {
			segment, _ := strconv.Atoi(m[2])
			days = append(days, day{entry.Name(), m[1], segment})
			d.segment[m[1]] = max(d.segment[m[1]], segment)
		}
	}
	slices.SortFunc(days, func(a, b day) int { return cmp.Or(cmp.Compare(a.day, b.day), cmp.Compare(a.segment, b.segment)) })
	for i, day := range days {
		if err := d.read(filepath.Join(d.dir, day.name), i >= len(days)-verified, report); err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(d.dir, day.name), err)
		}
	}
	return nil
}

// read reads one file, and moves its end to another file if it is torn.
func (d *device) read(path string, verify bool, report *Report) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // synced where it was changed
	batches, whole, damage, err := walk(file, verify)
	if err != nil {
		return err
	}
	for _, b := range batches {
		d.known[keyOf(b.id)] = sum(b.sum[:16])
	}
	report.Batches += len(batches)
	for _, at := range damage {
		report.Damaged = append(report.Damaged, fmt.Sprintf("%s at %d", path, at))
	}
	info, err := file.Stat()
	if err != nil || info.Size() == whole {
		return err
	}
	report.Torn = append(report.Torn, path)
	return moveAside(file, path, whole, info.Size())
}

// moveAside copies the end of a file to another file and truncates the first
// one.
func moveAside(file *os.File, path string, from, to int64) error {
	aside, err := os.OpenFile(fmt.Sprintf("%s.torn-%d", path, from), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(aside, io.NewSectionReader(file, from, to-from))
	err = errors.Join(err, aside.Close())
	if err == nil {
		err = file.Truncate(from)
	}
	if err == nil {
		err = file.Sync()
	}
	return err
}
