package jsonlog

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Log appends records to a file. A nil *Log, and one of an empty path, drops
// them.
type Log struct {
	mu   sync.Mutex // one write at a time, so that lines stay whole
	file *os.File
}

// Open opens the log for appending and makes the file, readable by its owner
// only, when it is not there.
func Open(path string) (*Log, error) {
	if path == "" {
		return &Log{}, nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	return &Log{file: file}, nil
}

// Write appends one record. A record that cannot be written (the disk is full)
// is reported on standard error and otherwise lost: logging never stops the
// traffic.
func (l *Log) Write(record any) {
	if l == nil {
		return
	}
	line, err := json.Marshal(record)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return
	}
	if err == nil {
		_, err = l.file.Write(append(line, '\n'))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: a log record was lost: %v\n", filepath.Base(os.Args[0]), err)
	}
}

// Close closes the file; later records are dropped.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	file := l.file
	l.file = nil
	return file.Close()
}

// Unix is a moment as the log writes it: unix seconds with a fraction.
func Unix(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// Since is the time since another as the log writes it, in seconds, to the
// microsecond.
func Since(t time.Time) float64 { return float64(time.Since(t).Microseconds()) / 1e6 }
