package report

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mplab/bench/mpflex/record"
	"mplab/bench/mpflex/rig"
	"mplab/bench/mpflex/workload"
	"mplab/linkem/probe"
)

var update = flag.Bool("update", false, "write the golden files again")

// run returns a generated run with everything that a report can contain.
func run(t *testing.T) *record.Results {
	t.Helper()
	r := &record.Results{Run: record.Run{
		Event: record.EventRun, Started: 1_790_000_000, Seed: 7, Runs: 3, Kernel: "6.18.0", CPUs: 2, Go: "go1.27",
		Workloads: []string{"f:10000", "f:5000000", "c:20:4:10000", "bulk:10000:10000000", "dies:5000000", "up/f:100000", "f:500000@loss1", "f:100000@r2", "rate:1000000000"},
	}}
	down, up := 7040.4, 2020.0
	r.Add(record.Links{Event: record.EventLinks, Profile: "paper", Checked: []rig.Checked{
		{Link: "wlan0", Result: probe.Result{RTT: probe.RTT{Median: 50.6}, DownKbps: &down, UpKbps: &up}},
		{Link: "wlan0+wan", Result: probe.Result{RTT: probe.RTT{Median: 54.7}}},
	}})
	add := func(work, label, name, congestion string, ms ...float64) {
		w, err := workload.Parse(work)
		if err != nil {
			t.Fatal(err)
		}
		size := max(w.Size*w.Count, 1)
		if label == workload.LabelShort {
			size = w.Short
		}
		for i, v := range ms {
			m := record.Measurement{
				Event: record.EventMeasurement, Round: i + 1, Profile: w.Profile.Name, Workload: work, Method: name, Congestion: congestion,
				Sample: workload.Sample{Label: label, Bytes: size, Ms: v, LimitMs: w.Limit()},
				Links:  map[string]rig.Traffic{rig.WiFi: {DownBytes: int64(size), UpBytes: int64(size) / 40}, rig.LTE: {DownBytes: int64(size) / 25}},
				Host:   rig.Load{CPUSeconds: 2, MachineCPUSeconds: 3, Others: 0.1 * float64(i)},
			}
			if name == "mpflex" {
				m.Links[rig.LTE] = rig.Traffic{DownBytes: int64(size) / 20}
			}
			if v < 0 {
				m.Ms, m.Error = -v, "i/o timeout"
			}
			r.Add(m)
		}
	}
	add("f:10000", "file", "tcp-wifi", "cubic", 122, 121, 123)
	add("f:5000000", "file", "tcp-wifi", "cubic", 6059, 6058, 6061)
	for i, congestion := range []string{"bbr", "cubic"} { // in random order
		slower := 1 + 0.1*float64(i)
		add("f:10000", "file", "mptcp", congestion, 123, 122, 124)
		add("f:10000", "file", "yamux-mptcp", congestion, 86*slower, 85, 88)
		add("f:10000", "file", "mpflex", congestion, 74*slower, 73*slower, 75*slower)
		add("f:5000000", "file", "mptcp", congestion, 2971, 2934, 3036)
		add("f:5000000", "file", "mpflex", congestion, 2649, 2647, 2652)
		add("c:20:4:10000", "bundle", "mptcp", congestion, 656, 654, -10000)
		add("c:20:4:10000", "bundle", "yamux-mptcp", congestion, 464, 458, 540)
		add("c:20:4:10000", "bundle", "mpflex", congestion, 416, 413, 420)
		add("bulk:10000:10000000", "short", "mptcp", congestion, 393, 400, 380, 817)
		add("bulk:10000:10000000", "short", "yamux-mptcp", congestion, 903, 949)
		add("bulk:10000:10000000", "short", "mpflex", congestion, 150, 151, 164)
		add("bulk:10000:10000000", "bulk", "mptcp", congestion, 5579)
		add("dies:5000000", "dies", "mptcp", congestion, 5710, 5299)
		add("dies:5000000", "dies", "mpflex", congestion, -20000, -20000, 4100)
		add("dies:5000000", "dead", "mptcp", congestion, -10000, -10000)
		add("f:500000@loss1", "file", "mptcp", congestion, 643, 628, 688)
		add("f:500000@loss1", "file", "mpflex", congestion, 352, 332, 358)
		add("f:100000@r2", "file", "mpflex", congestion, 174, 172, 180)
	}
	add("up/f:100000", "file", "mptcp", "cubic", 400, 399, 401) // the limit is more than 0.62 of that
	add("up/f:100000", "file", "mpflex", "cubic", 260, 259, 261)
	add("rate:1000000000", "rate", "yamux-tcp", "cubic", 1500, 1600, 1550)
	add("rate:1000000000", "rate", "yamux-tls", "cubic", 1900, 1800, 1850)
	add("rate:1000000000", "rate", "mpflex-plain", "cubic", 1600, 1700, 1720)
	add("rate:1000000000", "rate", "mpflex", "cubic", 1400, 1700, 1720)
	faulty := r.Measurements[len(r.Measurements)-1]
	faulty.Ms, faulty.Faults = 1, []string{"1 of 2 paths"}
	r.Add(faulty)
	r.Measurements[0].Notes = []string{"rmnet0 carried 0.0 % of the bytes"}
	r.Add(record.Restart{Event: record.EventRestart, Method: "mpflex", Congestion: "bbr", Reason: "1 of 2 paths"})
	r.Add(record.Absent{Event: record.EventAbsent, Method: "tcp-lte", Congestion: "cubic", Profile: "paper", Reason: "no such device", Failed: true})
	return r
}

func TestReport(t *testing.T) {
	const golden = "testdata/report.md"
	got := Markdown(run(t))
	if *update {
		if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the report is not %s (written again by -update):\n%s", golden, got)
	}
}

func TestSummaries(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		values []float64
		want   Summary
		there  bool
	}{
		{[]float64{3}, Summary{3, 3, 3, 3, 3, 1, 0}, true},
		{[]float64{4, 1, 3, 2}, Summary{2.5, 1.75, 3.25, 1, 4, 4, 0}, true},
		{[]float64{5, inf, 1}, Summary{5, 3, inf, 1, inf, 3, 1}, true},
		{[]float64{inf, inf, 1}, Summary{inf, inf, inf, 1, inf, 3, 2}, false},
		{[]float64{inf, inf}, Summary{inf, inf, inf, inf, inf, 2, 2}, false},
	} {
		got := Summarize(c.values)
		if got != c.want || got.There() != c.there {
			t.Errorf("%v: %+v", c.values, got)
		}
	}
	if got := Summarize(nil); got.There() || !math.IsNaN(got.Median) {
		t.Errorf("of nothing: %+v", got)
	}
}

// TestTargets has the requested targets of the rows.
func TestTargets(t *testing.T) {
	for text, want := range map[string][]float64{
		"f:10000 file":              {0.62, 1.25, 1},
		"f:50000 file":              {0.62, 1.25, 1},
		"f:100000 file":             {0.62, 1.15, 1},
		"f:500000 file":             {0.62, 1.15, 1},
		"f:1000000 file":            {0.72, 1.15, 1},
		"f:2000000 file":            {0.95, 1.05, 1},
		"up/f:5000000 file":         {0.95, 1.05, 1},
		"c:40:8:50000 bundle":       {0.70, 1.20, 0.95},
		"s:10:10000 bundle":         {0.70, 1.20, 0.95},
		"bulk:10000:10000000 short": {0.45, -1, 0.3},
		"bulk:10000:10000000 bulk":  nil,
		"dies:5000000 dies":         {0.80, 1.05, 0.65},
		"dies:5000000 dead":         nil,
		"f:50000@loss1 file":        {0.6, 1.20, 1},
		"f:2000000@loss1 file":      {0.6, 1.20, 1},
		"c:40:8:50000@loss1 bundle": nil,
		"f:100000@r2 file":          nil,
		"rate:1000000 rate":         nil,
	} {
		var work, label string
		for i, r := range text {
			if r == ' ' {
				work, label = text[:i], text[i+1:]
			}
		}
		w, err := workload.Parse(work)
		if err != nil {
			t.Fatal(err)
		}
		asked, some := targetOf(w, label)
		got := []float64{asked.mptcp, asked.limit, asked.yamux}
		if math.IsNaN(asked.limit) {
			got[1] = -1
		}
		if some != (want != nil) || some && !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", text, got, some)
		}
	}
}
