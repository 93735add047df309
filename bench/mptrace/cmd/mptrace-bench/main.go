// Command mptrace-bench measures how fast mptrace reads captures on this
// machine, compared with tools that do a part of its work, and prints Markdown.
//
// The traces are captures of this machine's kernel (the program creates network
// namespaces and must be root). They are extended by repetition with all
// numbers shifted. They are kept in a directory for later runs.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"mplab/analysis/mptrace"
	"mplab/analysis/mptrace/labtest"
)

func main() {
	if err := dispatch(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mptrace-bench:", err)
		os.Exit(1)
	}
}

// dispatch runs a step that needs a separate process, or the whole benchmark.
func dispatch(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "walk":
		return walkOnly(args[1])
	case len(args) == 2 && args[0] == "profile":
		return printProfile(args[1])
	case len(args) == 3 && args[0] == "count":
		c, err := countMptrace(args[1], args[2])
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(c)
	case len(args) == 5 && args[0] == "make":
		f, err := factoryOf(args[1], args[3], args[4])
		if err != nil {
			return err
		}
		_, err = f.make(args[2])
		return err
	case len(args) == 3 && args[0] == "stream":
		f, err := factoryOf(args[1], args[2], "0")
		if err != nil {
			return err
		}
		_, err = f.write("bulk", os.Stdout)
		return err
	case len(args) == 4 && args[0] == "flood":
		return writeFlood(args[1], args[2], args[3])
	}
	return bench()
}

func factoryOf(dir, packets, short string) (f factory, err error) {
	f.dir = dir
	if f.packets, err = strconv.ParseInt(packets, 10, 64); err != nil {
		return f, err
	}
	f.short, err = strconv.Atoi(short)
	return f, err
}

// walkOnly is the lower bound: it reads only the record headers of a capture.
func walkOnly(file string) error {
	n := 0
	err := walkFile(file, func(record) error {
		n++
		return nil
	})
	fmt.Println(n)
	return err
}

// profile is what mptrace does with the packets of a capture.
type profile struct {
	Fast   float64    `json:"fast_share"` // share of the packets on the fast path
	Stages [3]float64 `json:"stages_ns"`  // time per packet for reading, TCP, and connections with their rows
}

// printProfile analyses a capture and prints its profile as JSON.
func printProfile(file string) error {
	dir, err := os.MkdirTemp("", "mptrace-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var stages mptrace.Stages
	r, err := mptrace.Analyse([]string{file}, mptrace.Options{Threads: 3, Directory: dir, Stages: &stages})
	if err != nil {
		return err
	}
	n := float64(max(1, r.Files[0].TCP))
	p := profile{Fast: float64(r.FastPackets) / n}
	for i, d := range [...]time.Duration{stages.Read, stages.Follow, stages.Connect} {
		p.Stages[i] = float64(d) / n
	}
	return json.NewEncoder(os.Stdout).Encode(p)
}

// profileOf runs printProfile in a separate process, because this process must
// stay small (see timed).
func profileOf(file string) (p profile, err error) {
	self, err := os.Executable()
	if err != nil {
		return p, err
	}
	out, err := exec.Command(self, "profile", file).Output()
	if err != nil {
		return p, fmt.Errorf("profile of %s: %w", file, err)
	}
	return p, json.Unmarshal(out, &p)
}

type settings struct {
	dir, mptrace, mptcptrace, json string
	runs                           int
	quick                          bool
	beside, linear, floods         bool // parts to measure
}

// report holds all measured values.
type report struct {
	CPU       string    `json:"cpu"`
	Cores     int       `json:"cores"`
	Kernel    string    `json:"kernel"`
	Traces    []*trace  `json:"traces"`
	Results   []result  `json:"results"`
	Linearity []line    `json:"linearity,omitempty"`
	Floods    []flooded `json:"floods,omitempty"`
}

func bench() error {
	var o settings
	flag.StringVar(&o.dir, "dir", "build/mptrace-bench", "folder for traces, which are reused")
	flag.StringVar(&o.mptrace, "mptrace", "", "program to measure (default: built from this module)")
	flag.StringVar(&o.mptcptrace, "mptcptrace", "", "mptcptrace, when it is not in PATH")
	flag.StringVar(&o.json, "json", "", "write all figures to this file as JSON")
	flag.IntVar(&o.runs, "runs", 7, "runs of each tool; the median counts")
	flag.BoolVar(&o.quick, "quick", false, "small traces, one run")
	flag.BoolVar(&o.beside, "beside", true, "measure it beside other tools")
	flag.BoolVar(&o.linear, "linear", true, "measure longer and longer traces too")
	flag.BoolVar(&o.floods, "floods", true, "measure floods too")
	flag.Parse()
	if err := prepare(&o); err != nil {
		return err
	}
	packets, short, sizes := lengths[0], connections, lengths
	shortPackets, floodPackets := int64(2_000_000), floodLengths[0]
	if o.quick {
		packets, short, shortPackets, sizes, o.runs = 400_000, 240, 50_000, []int64{400_000, 800_000}, 1
		floodPackets = floodLengths[1]
	}
	r := newReport()
	var err error
	if o.beside {
		err = r.measureBeside(o, packets, shortPackets, short)
	}
	if o.linear && err == nil {
		r.Linearity, err = linearity(o.dir, o.mptrace, sizes, (o.runs+1)/2)
	}
	if o.floods && err == nil {
		r.Floods, err = floods(o.mptrace, floodPackets)
	}
	r.print(os.Stdout)
	if o.json != "" {
		b, _ := json.MarshalIndent(r, "", " ")
		if err := os.WriteFile(o.json, append(b, '\n'), 0o644); err != nil {
			return err
		}
	}
	return err
}

// measureBeside measures all tools on traces of the given numbers of packets.
func (r *report) measureBeside(o settings, packets, shortPackets int64, short int) error {
	for _, one := range []struct {
		name    string
		packets int64
	}{{"bulk", packets}, {"bulk-pcapng", packets}, {"bulk-v0", packets}, {"many", shortPackets}, {"short", shortPackets}} {
		t, err := made(o.dir, one.name, one.packets, short)
		if err != nil {
			return err
		}
		if t.profile, err = profileOf(t.File); err != nil {
			return err
		}
		r.Traces = append(r.Traces, t)
		r.Results = append(r.Results, measure(t, newTools(o.mptrace, o.mptcptrace), o.runs)...)
	}
	return nil
}

// prepare creates the directory, builds mptrace and finds mptcptrace.
func prepare(o *settings) (err error) {
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return err
	}
	if o.quick {
		o.dir = filepath.Join(o.dir, "quick")
	}
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return err
	}
	if o.mptrace == "" {
		o.mptrace = filepath.Join(o.dir, "mptrace")
		if out, err := exec.Command("go", "build", "-o", o.mptrace, "mplab/analysis/mptrace/cmd/mptrace").CombinedOutput(); err != nil {
			return fmt.Errorf("build mptrace: %w: %s", err, out)
		}
	} else if o.mptrace, err = filepath.Abs(o.mptrace); err != nil {
		return err
	}
	if o.mptcptrace == "" {
		o.mptcptrace, _ = exec.LookPath("mptcptrace")
	} else if o.mptcptrace, err = filepath.Abs(o.mptcptrace); err != nil {
		return err
	}
	if !o.beside && !o.linear {
		return nil
	}
	if _, err := os.Stat(filepath.Join(o.dir, "bulk.recorded")); err != nil {
		return labtest.Missing()
	}
	return nil
}

// made creates a trace in a separate process, because this process must stay
// small (see timed).
func made(dir, name string, packets int64, short int) (*trace, error) {
	f := factory{dir, packets, short}
	if t, err := readManifest(f.file(name)); err == nil {
		return t, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(os.Stderr, "making %s of %d packets\n", name, packets)
	c := exec.Command(self, "make", dir, name, fmt.Sprint(packets), fmt.Sprint(short))
	c.Stdout, c.Stderr = io.Discard, os.Stderr
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("make %s: %w", name, err)
	}
	return readManifest(f.file(name))
}

// free returns the free disk space of a directory in bytes.
func free(dir string) int64 {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0
	}
	return int64(s.Bavail) * s.Bsize
}
