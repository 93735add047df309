package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// result is the cost of a tool for a trace.
type result struct {
	Trace   string  `json:"trace"`
	Tool    string  `json:"tool"`
	Missing bool    `json:"missing,omitempty"`
	Failed  string  `json:"failed,omitempty"`
	Runs    int     `json:"runs"`
	Cost    cost    `json:"cost"` // median
	PerS    float64 `json:"packets_per_s"`
	Counts  counts  `json:"counts"`
	Differs string  `json:"differs"`
}

// longRun is the duration in seconds above which a tool is not run again.
const longRun = 30

// measure runs all tools that can read a trace, in turns, so that other load on
// the machine affects all tools equally.
func measure(t *trace, tools []tool, runs int) []result {
	results, costs := []result{}, map[string][]cost{}
	for _, u := range tools {
		if u.takes(t) {
			results = append(results, result{Trace: t.Name, Tool: u.Name, Missing: u.path == "", Counts: unsaid})
		}
	}
	warm(t.File)
	for turn := range runs {
		for i := range results {
			r := &results[(i+turn)%len(results)]
			if r.Missing || r.Failed != "" || len(costs[r.Tool]) > 0 && costs[r.Tool][0].Wall > longRun {
				continue
			}
			fmt.Fprintf(os.Stderr, "%s: run %d of %d: %s\n", t.Name, turn+1, runs, r.Tool)
			if c, err := r.run(t, tools, turn == 0); err != nil {
				r.Failed = err.Error()
			} else {
				costs[r.Tool] = append(costs[r.Tool], c)
			}
		}
	}
	for i := range results {
		r := &results[i]
		if all := costs[r.Tool]; len(all) > 0 {
			r.Runs, r.Cost = len(all), median(all)
			r.PerS = float64(t.Packets) / r.Cost.Wall
		}
	}
	return results
}

// run runs a tool once. With compare, it also compares the tool's counts with
// the trace.
func (r *result) run(t *trace, tools []tool, compare bool) (cost, error) {
	scratch, err := os.MkdirTemp("", "mptrace-bench-*")
	if err != nil {
		return cost{}, err
	}
	defer os.RemoveAll(scratch)
	for _, u := range tools {
		if u.Name != r.Tool {
			continue
		}
		c, output, err := timed(scratch, u.command(t.File, scratch), nil)
		if err == nil && compare {
			r.Counts, err = u.count(t, output, scratch)
			r.Differs = r.Counts.compare(t)
		}
		return c, err
	}
	return cost{}, fmt.Errorf("no tool %s", r.Tool)
}

// warm reads a file into the page cache.
func warm(name string) { _ = walkFile(name, func(record) error { return nil }) }

// lengths are the trace lengths of the linearity table, in packets.
var lengths = []int64{5_000_000, 10_000_000, 20_000_000, 40_000_000, 65_000_000}

// line is a row of the linearity table.
type line struct {
	Packets int64   `json:"packets"`
	Piped   bool    `json:"piped"` // through standard input, because the disk was too small
	Cost    cost    `json:"cost"`
	PerS    float64 `json:"packets_per_s"`
}

// bytesPerPacket is a generous estimate of the size of a packet in a
// headers-only pcap file.
const bytesPerPacket = 120

// linearity measures the reading of increasingly long traces.
func linearity(dir, mptrace string, sizes []int64, runs int) ([]line, error) {
	var table []line
	for _, packets := range sizes {
		l, err := lengthen(dir, mptrace, packets, runs)
		if err != nil {
			return table, err
		}
		table = append(table, l)
	}
	return table, nil
}

func lengthen(dir, mptrace string, packets int64, runs int) (line, error) {
	scratch, err := os.MkdirTemp("", "mptrace-bench-*")
	if err != nil {
		return line{}, err
	}
	defer os.RemoveAll(scratch)
	tables := filepath.Join(scratch, "tables")
	l := line{Packets: packets, Piped: free(dir) < 2*packets*bytesPerPacket}
	var costs []cost
	file, kept := "-", false
	if _, err := readManifest(factory{dir: dir, packets: packets}.file("bulk")); err == nil {
		kept, l.Piped = true, false
	}
	if !l.Piped {
		t, err := made(dir, "bulk", packets, 0)
		if err != nil {
			return l, err
		}
		file, l.Packets = t.File, t.Packets
		if !kept {
			defer os.Remove(t.File + ".json")
			defer os.Remove(t.File)
		}
		warm(file)
	}
	for turn := range runs {
		fmt.Fprintf(os.Stderr, "linearity: run %d of %d: %d packets\n", turn+1, runs, packets)
		var stdin *os.File
		var stream *exec.Cmd
		if l.Piped {
			if stream, stdin, err = streamed("stream", dir, fmt.Sprint(packets)); err != nil {
				return l, err
			}
		}
		c, _, err := timed(scratch, []string{mptrace, file, "-o", tables, "--threads", "3"}, stdin)
		if stream != nil {
			_ = stdin.Close()
			_ = stream.Wait()
		}
		if err != nil {
			return l, err
		}
		costs = append(costs, c)
		_ = os.RemoveAll(tables)
	}
	l.Cost = median(costs)
	l.PerS = float64(l.Packets) / l.Cost.Wall
	return l, nil
}

// streamed starts this program to write a trace into a pipe.
func streamed(command ...string) (*exec.Cmd, *os.File, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	c := exec.Command(self, command...)
	c.Stdout, c.Stderr = in, os.Stderr
	err = c.Start()
	_ = in.Close()
	return c, out, err
}
