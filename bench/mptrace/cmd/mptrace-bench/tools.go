package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"mplab/internal/lines"
)

// counts are a tool's counts for a trace; −1: not reported.
type counts struct {
	Packets     int64    `json:"packets"`
	Connections int64    `json:"connections"`
	Flows       int64    `json:"flows"`
	Bytes       [2]int64 `json:"bytes"`
}

var unsaid = counts{-1, -1, -1, [2]int64{-1, -1}}

// tool is a program that reads traces.
type tool struct {
	Name    string
	path    string // empty: not installed
	command func(file, scratch string) []string
	// count reads the counts from the output of the command and from files in
	// the scratch directory.
	count func(t *trace, output, scratch string) (counts, error)
	takes func(*trace) bool
}

// Names of the reference tool and of the lower bound.
const (
	reference = "mptrace, 1 thread"
	parallel  = "mptrace, 3 threads"
	floor     = "only record headers"
)

func newTools(mptrace, mptcptrace string) []tool {
	self, _ := os.Executable()
	installed := func(name string) string {
		path, _ := exec.LookPath(name)
		return path
	}
	pcap := func(t *trace) bool { return t.Name != "bulk-pcapng" }
	every := func(*trace) bool { return true }
	ours := func(threads int) func(string, string) []string {
		return func(file, scratch string) []string {
			return []string{mptrace, file, "-o", filepath.Join(scratch, "tables"), "--threads", strconv.Itoa(threads)}
		}
	}
	count := func(t *trace, _, _ string) (c counts, err error) {
		out, err := exec.Command(self, "count", mptrace, t.File).Output()
		if err != nil {
			return unsaid, fmt.Errorf("count the rows of mptrace: %w", err)
		}
		return c, json.Unmarshal(out, &c)
	}
	return []tool{
		{reference, mptrace, ours(1), count, every},
		{parallel, mptrace, ours(3), count, every},
		{floor, self, func(file, _ string) []string { return []string{self, "walk", file} }, countWalk, every},
		{"tcptrace -l -r -W", installed("tcptrace"), func(file, _ string) []string {
			return []string{"tcptrace", "-n", "-l", "-r", "-W", file}
		}, countTcptrace, pcap},
		{"tshark -z conv,tcp", installed("tshark"), func(file, _ string) []string {
			return []string{"tshark", "-n", "-q", "-z", "conv,tcp", "-r", file}
		}, countTshark, pcap},
		{"mptcptrace -s -S -w 2", mptcptrace, func(file, _ string) []string {
			return []string{mptcptrace, "-f", file, "-s", "-S", "-w", "2"}
		}, countMptcptrace, func(t *trace) bool { return t.Name == "bulk-v0" }},
	}
}

// countMptrace runs mptrace again to get the rows as JSON. They need memory, so
// this runs in a separate process (see timed).
func countMptrace(program, file string) (counts, error) {
	command := exec.Command(program, file, "--json")
	out, err := command.StdoutPipe()
	if err != nil {
		return unsaid, err
	}
	if err := command.Start(); err != nil {
		return unsaid, err
	}
	var said struct {
		Files []struct {
			TCP int64 `json:"tcp_packets"`
		} `json:"files"`
		Connections []struct {
			Up   int64 `json:"bytes_up"`
			Down int64 `json:"bytes_down"`
		} `json:"connections"`
		Subflows []struct{} `json:"subflows"`
	}
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&said); err != nil {
		_ = command.Process.Kill()
		_ = command.Wait()
		return unsaid, err
	}
	c := counts{Connections: int64(len(said.Connections)), Flows: int64(len(said.Subflows))}
	for _, f := range said.Files {
		c.Packets += f.TCP
	}
	for _, one := range said.Connections {
		c.Bytes[0] += one.Up
		c.Bytes[1] += one.Down
	}
	return c, command.Wait()
}

func countWalk(_ *trace, output, _ string) (counts, error) {
	c := unsaid
	b, err := os.ReadFile(output)
	if err == nil {
		c.Packets, err = strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	}
	return c, err
}

var (
	tcptracePackets = regexp.MustCompile(`(\d+) TCP packets traced`)
	tcptraceFlows   = regexp.MustCompile(`(\d+) TCP connections? traced`)
	tsharkLine      = regexp.MustCompile(`^\S+\s+<->\s+\S+\s+\d+ \d+ \w+\s+\d+ \d+ \w+\s+(\d+) `)
)

func countTcptrace(_ *trace, output, _ string) (counts, error) {
	c := unsaid
	err := eachLine(output, func(line string) {
		if m := tcptracePackets.FindStringSubmatch(line); m != nil {
			c.Packets, _ = strconv.ParseInt(m[1], 10, 64)
		}
		if m := tcptraceFlows.FindStringSubmatch(line); m != nil {
			c.Flows, _ = strconv.ParseInt(m[1], 10, 64)
		}
	})
	return c, err
}

func countTshark(_ *trace, output, _ string) (counts, error) {
	c := unsaid
	c.Packets, c.Flows = 0, 0
	err := eachLine(output, func(line string) {
		if m := tsharkLine.FindStringSubmatch(line); m != nil {
			n, _ := strconv.ParseInt(m[1], 10, 64)
			c.Packets += n
			c.Flows++
		}
	})
	return c, err
}

// countMptcptrace reads connections and subflows from the output, and bytes
// from the table of each connection.
func countMptcptrace(_ *trace, output, scratch string) (counts, error) {
	c := unsaid
	c.Connections, c.Flows = 0, 0
	err := eachLine(output, func(line string) {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "MPTCP connection"):
			c.Connections++
		case strings.HasPrefix(strings.TrimSpace(line), "Subflow"):
			c.Flows++
		}
	})
	tables, _ := filepath.Glob(filepath.Join(scratch, "stats_*.csv"))
	for _, table := range tables {
		_ = eachLine(table, func(line string) {
			cells := strings.FieldsFunc(line, func(r rune) bool { return r == ';' || r == ',' })
			if len(cells) == 5 && cells[2] == "seqAcked" {
				for direction := range 2 {
					n, _ := strconv.ParseInt(strings.TrimSpace(cells[3+direction]), 10, 64)
					c.Bytes[direction] = max(c.Bytes[direction], 0) + n - 2 // includes handshake and DATA_FIN
				}
			}
		})
	}
	return c, err
}

func eachLine(name string, each func(string)) error {
	return lines.Read([]string{name}, 1<<20, "a line of more than 1 MiB", func(line []byte) error {
		each(string(line))
		return nil
	})
}

// compare reports the differences between a tool's counts and the trace.
func (c counts) compare(t *trace) string {
	var differs []string
	note := func(what string, said, is int64) {
		if said >= 0 && said != is {
			differs = append(differs, fmt.Sprintf("%s %d, are %d", what, said, is))
		}
	}
	note("packets", c.Packets, t.Packets)
	note("connections", c.Connections, t.Connections)
	note("flows", c.Flows, t.Flows)
	note("bytes up", c.Bytes[0], t.Bytes[0])
	note("bytes down", c.Bytes[1], t.Bytes[1])
	return strings.Join(differs, "; ")
}
