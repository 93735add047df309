package tables

import (
	"bufio"
	"os"
	"path/filepath"

	"mplab/analysis/mptrace/internal/parquet"
)

// ParquetSink writes tables into a directory as Parquet files, one per table:
// connections.parquet, subflows.parquet and so on. Its memory does not grow
// with the number of rows. The caller must call Close or Abort.
type ParquetSink struct {
	sink   Sink
	dir    string
	files  []*tableFile
	writer chan *table // to the goroutine that encodes and writes
	pool   parquet.Pool
	done   bool
}

// tableFile is a table that is being written.
type tableFile struct {
	*table
	*draft
	slot slot
	w    *bufio.Writer
}

// ParquetOptions select tables.
type ParquetOptions struct {
	Tables Set   // tables to write; 0: all
	Keep   Set   // tables whose rows are also kept in memory, written or not
	Most   int64 // maximum number of kept rows, see NewMemorySink
}

// NewParquetSink creates the directory if it is missing, and starts the files.
func NewParquetSink(dir string, o ParquetOptions) (*ParquetSink, error) {
	if o.Tables == 0 {
		o.Tables = All
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	p := &ParquetSink{dir: dir, writer: make(chan *table)}
	go writeGroups(p.writer)
	kept := p.sink.bound(o.Most)
	for i, slot := range p.sink.slots() {
		about := &catalog[i]
		if (o.Tables|o.Keep)&about.set == 0 {
			continue
		}
		slot.open()
		if o.Keep&about.set != 0 {
			slot.keepRows(kept)
		}
		if o.Tables&about.set != 0 {
			if err := p.begin(slot, about); err != nil {
				p.Abort()
				return nil, err
			}
		}
	}
	return p, nil
}

func (p *ParquetSink) begin(slot slot, about *description) error {
	d, err := newDraft(filepath.Join(p.dir, about.Name+".parquet"))
	if err != nil {
		return err
	}
	t := &tableFile{draft: d, slot: slot, w: bufio.NewWriterSize(d.f, 1<<16)}
	p.files = append(p.files, t)
	t.table = slot.writeTo(t.w, about, &p.pool)
	t.table.writer = p.writer
	return t.table.err
}

// Sink returns the sink that accepts the rows.
func (p *ParquetSink) Sink() *Sink { return &p.sink }

// Err returns the first error so far, with the name of its file. Rows added
// after the error are lost. Close returns the same error.
func (p *ParquetSink) Err() error {
	for _, t := range p.files {
		if err := t.slot.err(); err != nil {
			return t.failed(err)
		}
	}
	return nil
}

// Close completes all files and then renames them to their final names,
// replacing older files. Each file appears complete or not at all; if writing
// any file fails, no file appears.
func (p *ParquetSink) Close() error {
	if p.done {
		return nil
	}
	defer p.Abort()
	for _, t := range p.files {
		if err := t.finish(); err != nil {
			return t.failed(err)
		}
	}
	for _, t := range p.files {
		if err := t.place(); err != nil {
			return t.failed(err)
		}
	}
	return nil
}

// Abort removes the unfinished files. After Close it does nothing.
func (p *ParquetSink) Abort() {
	if p.done {
		return
	}
	p.done = true
	for _, t := range p.files {
		if t.table != nil {
			_ = t.table.wait()
		}
		t.discard()
	}
	if p.writer != nil {
		close(p.writer)
	}
}

func (t *tableFile) finish() error {
	t.slot.flush()
	if err := t.slot.err(); err != nil {
		return err
	}
	if err := t.close(); err != nil {
		return err
	}
	if err := t.w.Flush(); err != nil {
		return err
	}
	return t.draft.finish()
}
