package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"
)

// cost is the cost of one run of a program.
type cost struct {
	Wall   float64 `json:"wall_s"`
	CPU    float64 `json:"cpu_s"`
	PeakMB float64 `json:"peak_mb"`
}

// timed runs a command in a directory and leaves its output in a file there.
// This process must stay small: the kernel counts its memory for the child
// until the child executes its program.
func timed(dir string, command []string, stdin *os.File) (cost, string, error) {
	out, err := os.CreateTemp(dir, "out-*")
	if err != nil {
		return cost{}, "", err
	}
	defer out.Close()
	c := exec.Command(command[0], command[1:]...)
	c.Dir, c.Stdin, c.Stdout, c.Stderr = dir, stdin, out, out
	start := time.Now()
	err = c.Run()
	took := time.Since(start).Seconds()
	if c.ProcessState == nil {
		return cost{}, out.Name(), err
	}
	peak := 0.0
	if usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		peak = float64(usage.Maxrss) / 1024
	}
	if err != nil {
		text, _ := os.ReadFile(out.Name())
		err = fmt.Errorf("%s: %w: %s", command[0], err, text[max(0, len(text)-500):])
	}
	cpu := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	return cost{took, cpu.Seconds(), peak}, out.Name(), err
}

// median returns the run with the median wall time. Its memory is the maximum
// over all runs.
func median(runs []cost) cost {
	sorted := slices.Clone(runs)
	slices.SortFunc(sorted, func(a, b cost) int {
		switch {
		case a.Wall < b.Wall:
			return -1
		case a.Wall > b.Wall:
			return 1
		}
		return 0
	})
	m := sorted[len(sorted)/2]
	for _, r := range runs {
		m.PeakMB = max(m.PeakMB, r.PeakMB)
	}
	return m
}
