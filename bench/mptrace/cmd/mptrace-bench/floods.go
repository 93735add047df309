package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"mplab/analysis/mptrace/tables"
	"mplab/bench/mptrace/flood"
)

// flooded is a row of the flood table.
type flooded struct {
	Name    string  `json:"name"`
	What    string  `json:"what"`
	Packets int64   `json:"packets"`
	Flows   int64   `json:"flows"`
	StepNS  int64   `json:"step_ns"` // time between packets in the trace
	Cost    cost    `json:"cost"`
	PerS    float64 `json:"packets_per_s"`
	Evicted int64   `json:"flows_evicted"`
}

// usualStepNS is the default time between two packets of a flood.
const usualStepNS = 10_000

// floodLengths are the numbers of packets of a flood: full and quick.
var floodLengths = [2]int64{10_000_000, 200_000}

// floods measures mptrace with default options on a pipe. The simplest floods
// are also measured with a duration of one second, independent of their length.
func floods(mptrace string, packets int64) ([]flooded, error) {
	var table []flooded
	for _, k := range flood.Kinds {
		steps := []int64{usualStepNS}
		if k.Name == "syn" || k.Name == "join" {
			steps = append(steps, 1e9/packets)
		}
		for _, step := range steps {
			fmt.Fprintf(os.Stderr, "flood: %s, %d ns apart\n", k.Name, step)
			f := flooded{Name: k.Name, What: k.What, Packets: packets, Flows: packets / k.PerFlow(), StepNS: step}
			if err := f.measure(mptrace); err != nil {
				return table, err
			}
			table = append(table, f)
		}
	}
	return table, nil
}

func (f *flooded) measure(mptrace string) error {
	scratch, err := os.MkdirTemp("", "mptrace-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	stream, stdin, err := streamed("flood", f.Name, strconv.FormatInt(f.Packets, 10), strconv.FormatInt(f.StepNS, 10))
	if err != nil {
		return err
	}
	dir := filepath.Join(scratch, "tables")
	f.Cost, _, err = timed(scratch, []string{mptrace, "-", "-o", dir}, stdin)
	if err = errors.Join(err, stdin.Close(), stream.Wait()); err != nil {
		return fmt.Errorf("flood %s: %w", f.Name, err)
	}
	f.PerS = float64(f.Packets) / f.Cost.Wall
	return f.evicted(dir)
}

// evicted reads the number of flows that were ended early.
func (f *flooded) evicted(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, tables.SourcesFile))
	if err != nil {
		return err
	}
	var about struct{ Warnings tables.Warnings }
	if err := json.Unmarshal(b, &about); err != nil {
		return err
	}
	f.Evicted = about.Warnings.FlowsEvicted
	return nil
}

// writeFlood writes a flood to standard output.
func writeFlood(name, packets, stepNS string) error {
	k, ok := flood.Find(name)
	if !ok {
		return fmt.Errorf("no flood is called %q", name)
	}
	n, err := strconv.ParseInt(packets, 10, 64)
	if err != nil {
		return err
	}
	step, err := strconv.ParseInt(stepNS, 10, 64)
	if err != nil {
		return err
	}
	return k.Write(os.Stdout, n, step)
}
