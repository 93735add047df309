package capfile

import "io"

// Merger reads several captures as one, by time. The order within a file is
// kept even where its time stamps are not in order.
type Merger struct {
	files []*merged
	last  int
}

type merged struct {
	file *File
	head Record
	err  error
	done bool
}

// NewMerger merges open captures. Files stay the caller's to close.
func NewMerger(files []*File) *Merger {
	m := &Merger{last: -1}
	for _, f := range files {
		m.files = append(m.files, &merged{file: f})
	}
	for _, f := range m.files {
		f.advance()
	}
	return m
}

// Next returns the earliest frame and the index of its file; nil at the end.
// The frame is valid until the next call.
func (m *Merger) Next() (*Record, int) {
	if m.last >= 0 {
		m.files[m.last].advance()
	}
	m.last = -1
	for i, f := range m.files {
		if !f.done && (m.last < 0 || f.head.TimeNS < m.files[m.last].head.TimeNS) {
			m.last = i
		}
	}
	if m.last < 0 {
		return nil, -1
	}
	return &m.files[m.last].head, m.last
}

// Err says why reading of a file ended before its end; nil when it did not.
func (m *Merger) Err(file int) error { return m.files[file].err }

func (f *merged) advance() {
	if f.done {
		return
	}
	if err := f.file.Next(&f.head); err != nil {
		f.done = true
		if err != io.EOF {
			f.err = err
		}
	}
}
