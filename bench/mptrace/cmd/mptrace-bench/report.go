package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

func newReport() *report {
	r := &report{Cores: runtime.NumCPU(), CPU: "not known"}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for text := range strings.Lines(string(b)) {
			if name, value, ok := strings.Cut(text, ":"); ok && strings.TrimSpace(name) == "model name" {
				r.CPU = strings.TrimSpace(value)
				break
			}
		}
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		r.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	return r
}

// print prints the report as Markdown.
func (r *report) print(out io.Writer) {
	fmt.Fprintf(out, "%s, %d cores, Linux %s. Median of the runs by wall time; × wall and × CPU: how many times as much as %q.\n", r.CPU, r.Cores, r.Kernel, reference)
	for _, t := range r.Traces {
		fmt.Fprintf(out, "\n**%s**: %s.\n%d packets, %d connections (%d MPTCP), %d flows.\nFast path: %.1f %% of the packets. A packet takes %.0f ns to read, %.0f in its flow and %.0f in its connection.\n\n",
			t.Name, t.What, t.Packets, t.Connections, t.MPTCP, t.Flows, 100*t.Fast, t.Stages[0], t.Stages[1], t.Stages[2])
		fmt.Fprintln(out, "| tool | million packets/s | × wall | × CPU | wall s | CPU s | peak MB | runs | counts |\n"+
			"| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
		var base cost
		for _, one := range r.Results {
			if one.Trace == t.Name && one.Tool == reference {
				base = one.Cost
			}
		}
		for _, one := range r.Results {
			if one.Trace == t.Name {
				fmt.Fprintln(out, one.row(base))
			}
		}
	}
	r.printLinearity(out)
	r.printFloods(out)
}

func (r *report) printLinearity(out io.Writer) {
	if len(r.Linearity) == 0 {
		return
	}
	fmt.Fprintf(out, "\n**Linearity**, %s, bulk\n\n", parallel)
	fmt.Fprintln(out, "| million packets | read from | million packets/s | wall s | CPU s | peak MB |\n| ---: | --- | ---: | ---: | ---: | ---: |")
	for _, l := range r.Linearity {
		from := "file"
		if l.Piped {
			from = "pipe (no room on disk; its writer shares the processor)"
		}
		fmt.Fprintf(out, "| %.1f | %s | %.2f | %.2f | %.2f | %.0f |\n", float64(l.Packets)/1e6, from, l.PerS/1e6, l.Cost.Wall, l.Cost.CPU, l.Cost.PeakMB)
	}
}

func (r *report) printFloods(out io.Writer) {
	if len(r.Floods) == 0 {
		return
	}
	fmt.Fprint(out, "\n**Floods**, `mptrace - -o DIR` on a pipe whose writer shares the processor, one run\n\n")
	fmt.Fprintln(out, "| each flow | million packets | million flows | trace s | million packets/s | wall s | CPU s | peak MB | flows evicted |\n"+
		"| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, f := range r.Floods {
		fmt.Fprintf(out, "| %s | %.1f | %.2f | %.0f | %.2f | %.1f | %.1f | %.0f | %d |\n", f.What, float64(f.Packets)/1e6, float64(f.Flows)/1e6,
			float64(f.Packets*f.StepNS)/1e9, f.PerS/1e6, f.Cost.Wall, f.Cost.CPU, f.Cost.PeakMB, f.Evicted)
	}
}

func (r *result) row(base cost) string {
	switch {
	case r.Missing:
		return fmt.Sprintf("| %s | not installed | | | | | | | |", r.Tool)
	case r.Failed != "":
		return fmt.Sprintf("| %s | failed: %s | | | | | | | |", r.Tool, strings.ReplaceAll(r.Failed, "\n", " "))
	}
	agrees := "agree"
	if r.Differs != "" {
		agrees = r.Differs
	}
	return fmt.Sprintf("| %s | %.2f | %s | %s | %.2f | %.2f | %.0f | %d | %s |", r.Tool, r.PerS/1e6,
		times(r.Cost.Wall, base.Wall), times(r.Cost.CPU, base.CPU), r.Cost.Wall, r.Cost.CPU, r.Cost.PeakMB, r.Runs, agrees)
}

func times(a, b float64) string {
	if b == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f", a/b)
}
