package record

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"mplab/bench/mpflex/method"
	"mplab/bench/mpflex/rig"
	"mplab/bench/mpflex/workload"
)

// Events.
const (
	EventRun         = "run"
	EventLinks       = "links"
	EventAbsent      = "absent"
	EventRestart     = "restart"
	EventMeasurement = "measurement"
)

// Run describes a run.
type Run struct {
	Event     string   `json:"event"`
	Started   float64  `json:"started"` // unix time in s
	Seed      uint64   `json:"seed"`
	Runs      int      `json:"runs"`
	Workloads []string `json:"workloads"`
	Methods   []string `json:"methods"` // NAME/CONGESTION
	Kernel    string   `json:"kernel"`
	CPUs      int      `json:"cpus"`
	Go        string   `json:"go"`
	Rootless  bool     `json:"rootless"`
}

// Links holds the values of a profile's links that were measured before their use.
type Links struct {
	Event   string        `json:"event"`
	Profile string        `json:"profile"`
	Checked []rig.Checked `json:"checked"`
	Nice    int           `json:"nice"` // nice value of the benchmark's processes on these links
}

// Absent is a method that could not be measured.
type Absent struct {
	Event      string `json:"event"`
	Method     string `json:"method"`
	Congestion string `json:"congestion"`
	Profile    string `json:"profile"`
	Reason     string `json:"reason"`
	Failed     bool   `json:"failed"` // it exists but did not start
}

// Restart is a restart of a persistent method between two measurements.
type Restart struct {
	Event      string `json:"event"`
	Method     string `json:"method"`
	Congestion string `json:"congestion"`
	Reason     string `json:"reason"`
	Error      string `json:"error,omitempty"` // of the restart
}

// Measurement is one sample, with the state of the method and the links.
type Measurement struct {
	Event      string  `json:"event"`
	Time       float64 `json:"time"` // start of its run, unix time in s
	Round      int     `json:"round"`
	Profile    string  `json:"profile"`
	Workload   string  `json:"workload"`
	Method     string  `json:"method"`
	Congestion string  `json:"congestion"`
	workload.Sample

	// Of the whole run of the workload, which can have several samples.
	Links       map[string]rig.Traffic `json:"links"`        // delivered and lost on each link
	PathsBefore []netip.Addr           `json:"paths_before"` // of a persistent method: addresses with a live connection
	Observed    *method.Proof          `json:"observed,omitempty"`
	Faults      []string               `json:"faults,omitempty"` // the method was not as specified: exclude the sample
	Notes       []string               `json:"notes,omitempty"`  // remarks; the sample counts
	Host        rig.Load               `json:"host"`
}

// Results holds all records of a run.
type Results struct {
	Run          Run
	Links        []Links
	Absent       []Absent
	Restarts     []Restart
	Measurements []Measurement
}

// Add adds one record, which must have one of the types of this package.
func (r *Results) Add(record any) {
	switch v := record.(type) {
	case Run:
		r.Run = v
	case Links:
		r.Links = append(r.Links, v)
	case Absent:
		r.Absent = append(r.Absent, v)
	case Restart:
		r.Restarts = append(r.Restarts, v)
	case Measurement:
		r.Measurements = append(r.Measurements, v)
	default:
		panic(fmt.Sprintf("record: %T is no record", record))
	}
}

// longestLine is the maximum length of a line in bytes.
const longestLine = 4 << 20

// Read reads the records of a run. Its error contains the line number.
func Read(in io.Reader) (*Results, error) {
	results := &Results{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, longestLine)
	n := 0
	for lines.Scan() {
		n++
		record, err := decode(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if _, head := record.(Run); head != (n == 1) {
			return nil, fmt.Errorf("line %d: a run begins with one line of event %q, and has no other", n, EventRun)
		}
		results.Add(record)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", n+1, err)
	}
	if n == 0 {
		return nil, errors.New("there are no lines")
	}
	return results, nil
}

func decode(line []byte) (any, error) {
	var head struct{ Event string }
	if err := json.Unmarshal(line, &head); err != nil {
		return nil, err
	}
	switch head.Event {
	case EventRun:
		return into[Run](line)
	case EventLinks:
		return into[Links](line)
	case EventAbsent:
		return into[Absent](line)
	case EventRestart:
		return into[Restart](line)
	case EventMeasurement:
		return into[Measurement](line)
	}
	return nil, fmt.Errorf("unknown event %q", head.Event)
}

func into[T any](line []byte) (any, error) {
	var value T
	err := json.Unmarshal(line, &value)
	return value, err
}
