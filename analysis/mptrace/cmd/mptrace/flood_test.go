//go:build !race

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/file"

	"mplab/analysis/mptrace/tables"
	"mplab/bench/mptrace/flood"
)

// TestMemoryUnderFloods runs the program on floods through standard input. It
// must not use more memory than docs/trace-counting.md states, each flow must have a
// row, and the warnings must count the flows that were ended early.
func TestMemoryUnderFloods(t *testing.T) {
	const (
		atATime  = 1 << 16 // flows
		waiting  = 1 << 10 // MPTCP connections that lost their only subflow
		halfOpen = 300_000
		open     = 70_000
	)
	for _, c := range []struct {
		name        string
		flows       int64
		most        int64 // bytes
		least, last int64 // number of flows ended early
	}{
		{"syn", halfOpen, 150e6, halfOpen - atATime, halfOpen - 1},
		{"capable-v1", halfOpen, 150e6, halfOpen - atATime, halfOpen - 1},
		{"capable-v0", halfOpen, 150e6, halfOpen - atATime, halfOpen - 1},
		{"join", halfOpen, 150e6, halfOpen - atATime, halfOpen - 1},
		{"data", halfOpen, 150e6, halfOpen - atATime, halfOpen - 1},
		{"refused", halfOpen, 150e6, 0, 0}, // they are closed
		{"closed", halfOpen / 3, 150e6, 0, 0},
		{"tcp", open, 400e6, open - atATime, open - atATime},
		{"mptcp", open, 550e6, open - atATime, 2*(open-atATime) - waiting},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "tables")
			memory := underFlood(t, c.name, c.flows, io.Discard, "-o", dir)
			if memory > c.most {
				t.Errorf("%d bytes of memory, at most %d are promised", memory, c.most)
			}
			if n := evicted(t, dir); n < c.least || n > c.last {
				t.Errorf("%d flows were ended early, want %d to %d", n, c.least, c.last)
			}
			for _, table := range []string{"connections", "subflows"} {
				if n := rows(t, filepath.Join(dir, table+".parquet")); n != c.flows {
					t.Errorf("%d rows in %s, want %d", n, table, c.flows)
				}
			}
		})
	}
}

// TestMemoryOfTheSummary: memory does not grow with the number of connections
// without -o either.
func TestMemoryOfTheSummary(t *testing.T) {
	var text bytes.Buffer
	if memory := underFlood(t, "syn", 300_000, &text); memory > 150e6 {
		t.Errorf("%d bytes of memory", memory)
	}
	if !strings.Contains(text.String(), "the 8 of 300000 connections that carried most") {
		t.Error(text.String())
	}
}

// underFlood runs the program on a flood with the given number of flows. It
// returns the peak memory in bytes.
func underFlood(t *testing.T, name string, flows int64, stdout io.Writer, arguments ...string) int64 {
	t.Helper()
	kind, ok := flood.Find(name)
	if !ok {
		t.Fatalf("no flood %s", name)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(self, append([]string{"-"}, arguments...)...)
	command.Stdout = stdout
	command.Env = append(os.Environ(), "MPTRACE_TEST_ROLE=mptrace")
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(kind.Write(stdin, flows*kind.PerFlow(), 10_000), stdin.Close(), command.Wait()); err != nil {
		t.Fatal(err)
	}
	usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		t.Fatal("the kernel does not tell how much memory was in use")
	}
	return int64(usage.Maxrss) << 10
}

// evicted returns the number of flows that were ended early, from the sources
// file.
func evicted(t *testing.T, dir string) int64 {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, tables.SourcesFile))
	if err != nil {
		t.Fatal(err)
	}
	var about struct{ Warnings tables.Warnings }
	if err := json.Unmarshal(b, &about); err != nil {
		t.Fatal(err)
	}
	return about.Warnings.FlowsEvicted
}

func rows(t *testing.T, name string) int64 {
	t.Helper()
	in, err := file.OpenParquetFile(name, false)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	return in.NumRows()
}
