package jsonlog

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Log appends records to a file. A nil *Log, or one with an empty path, drops
// them.
type Log struct {
	mu   sync.Mutex // serialises writes, so that lines stay intact
	file *os.File
}

// Open opens the log for appending. It creates a missing file, readable only by
// its owner.
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

// Write appends one record. If that fails (the disk is full), it prints the
// error to standard error and drops the record: logging never stops the
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

// Unix returns a time in the form of the log: unix seconds with a fraction.
func Unix(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// Since returns the time since t in the form of the log: seconds, truncated to
// µs.
func Since(t time.Time) float64 { return float64(time.Since(t).Microseconds()) / 1e6 }
