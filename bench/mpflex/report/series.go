package report

import (
	"cmp"
	"math"
	"slices"

	"mplab/bench/mpflex/method"
	"mplab/bench/mpflex/record"
	"mplab/bench/mpflex/rig"
	"mplab/bench/mpflex/workload"
)

// row identifies a series by workload, label and congestion control; the method is the other coordinate.
type row struct {
	workload   string
	label      string
	congestion string
}

// series holds all samples of one method in one row.
type series struct {
	ms       []float64 // +Inf: failed
	limits   []float64
	down, up []float64 // link bytes divided by application bytes
	rates    []float64 // Gbit/s of the application
	cpu      []float64 // s per GB, of the benchmark's processes
	machine  []float64 // s per GB, of the whole machine
}

// table holds the series of a run. It excludes samples with faults.
type table struct {
	series    map[row]map[string]*series
	rows      []row // in the order of the workloads
	workloads map[string]workload.Workload
}

func newTable(results *record.Results) *table {
	t := &table{series: map[row]map[string]*series{}, workloads: map[string]workload.Workload{}}
	for _, m := range results.Measurements {
		if len(m.Faults) > 0 {
			continue
		}
		if _, known := t.workloads[m.Workload]; !known {
			w, err := workload.Parse(m.Workload)
			if err != nil {
				continue // of a version with other workloads
			}
			t.workloads[m.Workload] = w
		}
		r := row{m.Workload, m.Label, m.Congestion}
		if t.series[r] == nil {
			t.series[r] = map[string]*series{}
			t.rows = append(t.rows, r)
		}
		s := t.series[r][m.Method]
		if s == nil {
			s = &series{}
			t.series[r][m.Method] = s
		}
		s.add(m)
	}
	t.sort(results.Run.Workloads)
	return t
}

// sort sorts the rows by workload, and within a workload by the first appearance of their labels. The order of the
// methods is random.
func (t *table) sort(workloads []string) {
	var labels []string
	for _, r := range t.rows {
		if !slices.Contains(labels, r.label) {
			labels = append(labels, r.label)
		}
	}
	slices.SortStableFunc(t.rows, func(a, b row) int {
		return cmp.Or(
			cmp.Compare(slices.Index(workloads, a.workload), slices.Index(workloads, b.workload)),
			cmp.Compare(slices.Index(labels, a.label), slices.Index(labels, b.label)),
			cmp.Compare(slices.Index(method.Congestions, a.congestion), slices.Index(method.Congestions, b.congestion)),
		)
	})
}

func (s *series) add(m record.Measurement) {
	if m.Error != "" {
		s.ms = append(s.ms, math.Inf(1))
		return
	}
	s.ms = append(s.ms, m.Ms)
	if m.LimitMs > 0 {
		s.limits = append(s.limits, m.LimitMs)
	}
	bytes := float64(m.Bytes)
	var up, down int64
	for _, name := range []string{rig.WiFi, rig.LTE} {
		up += m.Links[name].UpBytes
		down += m.Links[name].DownBytes
	}
	s.down, s.up = append(s.down, float64(down)/bytes), append(s.up, float64(up)/bytes)
	s.rates = append(s.rates, bytes*8/m.Ms/1e6)
	s.cpu = append(s.cpu, m.Host.CPUSeconds/bytes*1e9)
	s.machine = append(s.machine, m.Host.MachineCPUSeconds/bytes*1e9)
}

// times returns the summary of one method in a row; it is empty without samples.
func (t *table) times(r row, name string) Summary {
	if s := t.series[r][name]; s != nil {
		return Summarize(s.ms)
	}
	return Summary{}
}

// limit returns the physical limit of a row in ms, or NaN. The limit of a dying link differs slightly between runs, so
// the median is used.
func (t *table) limit(r row) float64 {
	var all []float64
	for _, s := range t.series[r] {
		all = append(all, s.limits...)
	}
	return Summarize(all).Median
}

// bestYamux returns the fastest yamux over MPTCP in a row, over all congestion controls.
func (t *table) bestYamux(r row) Summary {
	best := Summary{}
	for _, congestion := range method.Congestions {
		r.congestion = congestion
		if s := t.times(r, method.YamuxMPTCP); s.There() && (!best.There() || s.Median < best.Median) {
			best = s
		}
	}
	return best
}

// ratio divides two medians. It returns NaN if one does not exist.
func ratio(a, b Summary) float64 {
	if !a.There() || !b.There() {
		return math.NaN()
	}
	return a.Median / b.Median
}

// toLimit divides a median by a limit.
func toLimit(a Summary, limit float64) float64 {
	if !a.There() {
		return math.NaN()
	}
	return a.Median / limit
}
