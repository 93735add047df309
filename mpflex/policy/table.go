package policy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"mplab/mpflex/wire"
)

// maxLabel is the largest label. Label 0 is not in a table.
const maxLabel = 255

// MaxTableSize bounds an encoded table in bytes: it must fit into an attach.
const MaxTableSize = wire.MaxSchemes

const (
	tableVersion = 1
	tableHeader  = 1 + 4 + 1 // version, generation, number of schemes
)

// Table maps labels to schemes. Label 0 always means every path with the session's
// default scheduler. A table is immutable.
type Table struct {
	// Generation counts tables from 1. It grows only if a table differs from the one
	// before.
	Generation uint32
	entries    [maxLabel + 1]entry // entries[0] is unused
	revision   int                 // counts the rule files
}

type entry struct {
	scheme *Scheme
	// retired is the revision that stopped using the scheme; 0: in use. Earlier flows
	// may still have the label.
	retired int
}

// Scheme returns the scheme of a label, or false if the label is not in the table.
func (t *Table) Scheme(label byte) (*Scheme, bool) {
	if label == 0 {
		return everyPath, true
	}
	scheme := t.entries[label].scheme
	return scheme, scheme != nil
}

// All returns labels and schemes, by ascending label from 1.
func (t *Table) All() iter.Seq2[byte, *Scheme] {
	return func(yield func(byte, *Scheme) bool) {
		for label, e := range t.entries {
			if e.scheme != nil && !yield(byte(label), e.scheme) {
				return
			}
		}
	}
}

// label returns the label of a scheme.
func (t *Table) label(scheme *Scheme) (byte, bool) {
	if scheme.equal(everyPath) {
		return 0, true
	}
	for label, known := range t.All() {
		if known.equal(scheme) {
			return label, true
		}
	}
	return 0, false
}

// tableOf assigns labels to schemes in order. Schemes of the previous table keep their
// labels, so the labels of open flows keep their meaning. New schemes get the lowest
// free label, or else the label that has been unused the longest. Unused schemes are
// also removed if the table would be too large.
func tableOf(schemes []*Scheme, previous *Table) (*Table, error) {
	t := &Table{}
	if previous != nil {
		*t = *previous
	}
	t.Generation++
	t.revision++
	used := [maxLabel + 1]bool{}
	changed := previous == nil
	var fresh []*Scheme
	for _, scheme := range schemes {
		if label, known := t.label(scheme); known {
			used[label] = true
			continue
		}
		fresh = append(fresh, scheme)
	}
	for label := range t.All() {
		switch e := &t.entries[label]; {
		case used[label]:
			e.retired = 0
		case e.retired == 0:
			e.retired = t.revision
		}
	}
	for _, scheme := range fresh {
		if _, known := t.label(scheme); known { // a duplicate in the list
			continue
		}
		label := t.free(&used)
		if label == 0 {
			return nil, errTooManySchemes
		}
		t.entries[label], used[label], changed = entry{scheme: scheme}, true, true
	}
	if !changed {
		t.Generation = previous.Generation
	}
	return t, t.fit(&used)
}

var errTooManySchemes = errors.New("more than 255 schemes")

// fit removes unused schemes until the table is small enough.
func (t *Table) fit(used *[maxLabel + 1]bool) error {
	for size := t.size(); size > MaxTableSize; size = t.size() {
		oldest := t.oldest(used)
		if oldest == 0 {
			return fmt.Errorf("the schemes take %d bytes; there is room for %d", size, MaxTableSize)
		}
		t.entries[oldest] = entry{}
	}
	return nil
}

func (t *Table) size() int {
	data, _ := t.AppendBinary(nil) // never fails
	return len(data)
}

// free returns the label to use next, or 0 if all are in use.
func (t *Table) free(used *[maxLabel + 1]bool) byte {
	for label := 1; label <= maxLabel; label++ {
		if t.entries[label].scheme == nil {
			return byte(label)
		}
	}
	return t.oldest(used)
}

// oldest returns the label that has been unused the longest, or 0 if all are in use.
func (t *Table) oldest(used *[maxLabel + 1]bool) byte {
	oldest := 0
	for label := 1; label <= maxLabel; label++ {
		e := t.entries[label]
		if e.scheme != nil && !used[label] && (oldest == 0 || e.retired < t.entries[oldest].retired) {
			oldest = label
		}
	}
	return byte(oldest)
}

// AppendBinary implements encoding.BinaryAppender. Each table has exactly one encoding,
// see spec.md.
func (t *Table) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, tableVersion)
	b = binary.BigEndian.AppendUint32(b, t.Generation)
	at := len(b)
	b = append(b, 0)
	for label, scheme := range t.All() {
		b[at]++
		b = appendText(append(b, label), scheme.Scheduler)
		for _, paths := range [][]string{scheme.Paths, scheme.Backup} {
			b = append(b, byte(len(paths)))
			for _, path := range paths {
				b = appendText(b, path)
			}
		}
	}
	return b, nil
}

// MarshalBinary implements encoding.BinaryMarshaler.
func (t *Table) MarshalBinary() ([]byte, error) { return t.AppendBinary(nil) }

func appendText(b []byte, text string) []byte { return append(append(b, byte(len(text))), text...) }

var errShortTable = errors.New("table of schemes: cut short")

// ParseTable decodes a table from the other side. It accepts only an encoding that
// AppendBinary can make.
func ParseTable(data []byte) (*Table, error) {
	if len(data) > MaxTableSize {
		return nil, fmt.Errorf("table of schemes: %d bytes; %d at most", len(data), MaxTableSize)
	}
	if len(data) < tableHeader {
		return nil, errShortTable
	}
	if data[0] != tableVersion {
		return nil, fmt.Errorf("table of schemes: version %d; known here: %d", data[0], tableVersion)
	}
	t := &Table{Generation: binary.BigEndian.Uint32(data[1:])}
	count, last := int(data[5]), 0
	d := decoder{rest: data[tableHeader:]}
	for range count {
		label := int(d.byte())
		scheme := &Scheme{Scheduler: d.text(), Paths: d.texts(), Backup: d.texts()}
		if d.short {
			return nil, errShortTable
		}
		if label <= last {
			return nil, fmt.Errorf("table of schemes: label %d after %d", label, last)
		}
		if err := scheme.check(); err != nil {
			return nil, fmt.Errorf("table of schemes: label %d: %w", label, err)
		}
		if known, twice := t.label(scheme); twice {
			return nil, fmt.Errorf("table of schemes: label %d: the scheme of label %d again", label, known)
		}
		t.entries[label].scheme, last = scheme, label
	}
	if len(d.rest) > 0 {
		return nil, fmt.Errorf("table of schemes: %d bytes follow it", len(d.rest))
	}
	return t, nil
}

// decoder reads fields from the front of a message.
type decoder struct {
	rest  []byte
	short bool // bytes were missing
}

func (d *decoder) bytes(n int) []byte {
	if d.short || n > len(d.rest) {
		d.short = true
		return nil
	}
	taken := d.rest[:n]
	d.rest = d.rest[n:]
	return taken
}

func (d *decoder) byte() byte {
	if b := d.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) text() string { return string(d.bytes(int(d.byte()))) }

func (d *decoder) texts() []string {
	n := int(d.byte())
	if n > maxPaths { // the rest is not parsed: check rejects so many paths
		n = maxPaths + 1
	}
	var texts []string
	for range n {
		texts = append(texts, d.text())
	}
	return texts
}
