package main

import (
	"strings"
	"testing"

	"mplab/bench/mpflex/rounds"
	"mplab/bench/mpflex/workload"
)

func TestCommandLine(t *testing.T) {
	c, err := parse(nil)
	if err != nil || c.Runs != rounds.DefaultRuns || len(c.Workloads) != len(workload.Default()) || c.Gap != rounds.DefaultGap {
		t.Errorf("no arguments: %+v, %v", c, err)
	}
	c, err = parse([]string{"-quick", "-methods", "mptcp/bbr", "-seed", "9"})
	if err != nil || c.Runs != rounds.QuickRuns || len(c.Workloads) != len(workload.Quick()) || len(c.Methods) != 1 || c.Seed != 9 {
		t.Errorf("-quick: %+v, %v", c, err)
	}
	c, err = parse([]string{"-quick", "-runs", "5", "-workloads", "f:1,up/f:2", "-json", "x.json"})
	if err != nil || c.Runs != 5 || len(c.Workloads) != 2 || c.json != "x.json" {
		t.Errorf("-quick with others: %+v, %v", c, err)
	}
}

// TestBadCommandLines has invalid input, and the start of its message.
func TestBadCommandLines(t *testing.T) {
	for text, want := range map[string]string{
		"-scale 2":         "scale: 2 is not within 0.001 and 1",
		"-runs 0":          "runs: 0 is not within 1 and 1000",
		"-workloads f:ten": `workload "f:ten": "ten" is not a number`,
		"-methods quic":    `method "quic": there are `,
		"f:10000":          `unexpected argument "f:10000"`,
	} {
		if _, err := parse(strings.Fields(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
