package rounds

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"mplab/bench/mpflex/method"
	"mplab/bench/mpflex/record"
	"mplab/bench/mpflex/report"
	"mplab/bench/mpflex/rig"
	"mplab/bench/mpflex/rig/rigtest"
	"mplab/bench/mpflex/workload"
)

func TestMain(m *testing.M) { rigtest.Main(m) }

func options(t *testing.T, methods, workloads string) Options {
	t.Helper()
	o := Options{Runs: 1, Seed: 1, Gap: 100 * time.Millisecond}
	var err error
	if o.Methods, err = method.ParseList(methods); err != nil {
		t.Fatal(err)
	}
	if o.Workloads, err = workload.ParseList(workloads); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestSmoke runs two tiny workloads with kernel MPTCP and with yamux: every byte is correct, both have two subflows, no
// time is below the physical limit, and the report has numbers.
func TestSmoke(t *testing.T) {
	rigtest.Need(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // it takes a quarter of that
	defer cancel()
	var lines, progress bytes.Buffer
	err := Run(ctx, options(t, "mptcp/cubic,yamux-mptcp/cubic", "f:300000,up/f:50000"), func(r any) error {
		return json.NewEncoder(&lines).Encode(r)
	}, &progress)
	if errors.Is(err, rig.ErrLinks) {
		t.Skipf("the machine is too busy to emulate links: %v", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	text := lines.String()
	results, err := record.Read(&lines)
	if err != nil {
		t.Fatal(err)
	}
	if len(results.Measurements) != 4 || len(results.Absent) != 0 || len(results.Links) != 1 {
		t.Fatalf("%s", text)
	}
	for _, m := range results.Measurements {
		// A failed comparison of bytes is also an error.
		if m.Error != "" || len(m.Faults) > 0 || m.LimitMs <= 0 || m.Ms < m.LimitMs {
			t.Errorf("%s, %s: error %q, faults %v, %.1f ms with a limit of %.1f", m.Workload, m.Method, m.Error, m.Faults, m.Ms, m.LimitMs)
		}
		along, down := int64(0), strings.HasPrefix(m.Workload, "f:")
		for _, name := range []string{rig.WiFi, rig.LTE} {
			if along += m.Links[name].UpBytes; down {
				along += m.Links[name].DownBytes - m.Links[name].UpBytes
			}
		}
		if along < int64(m.Bytes) {
			t.Errorf("%s, %s: %d bytes on the links for %d: it went another way", m.Workload, m.Method, along, m.Bytes)
		}
		if m.Observed == nil || down && len(m.Observed.Paths()) != 2 {
			t.Errorf("%s, %s: not two subflows: %+v", m.Workload, m.Method, m.Observed)
		}
		if m.Method == method.MPTCP && (m.Observed.Multipath == nil || !*m.Observed.Multipath) {
			t.Errorf("%s, %s: not MPTCP", m.Workload, m.Method)
		}
		if m.Method == method.YamuxMPTCP && len(m.PathsBefore) != 2 {
			t.Errorf("%s, %s: %v before", m.Workload, m.Method, m.PathsBefore)
		}
	}
	page := report.Markdown(results)
	for _, want := range []string{"| mptcp | ", "| yamux-mptcp | ", " 1.00 / "} {
		if !strings.Contains(page, want) {
			t.Errorf("the report has no %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
		t.Errorf("the report has numbers that are none:\n%s", page)
	}
}

// TestEndedEarly: a run that is ended stops after the current measurement and leaves nothing behind that affects the
// next run.
func TestEndedEarly(t *testing.T) {
	rigtest.Need(t)
	o := options(t, "mptcp/cubic", "rate:1000000")
	o.Runs = 1000
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		measured := 0
		err := Run(ctx, o, func(r any) error {
			if _, is := r.(record.Measurement); is {
				measured++
				cancel()
			}
			return nil
		}, io.Discard)
		if !errors.Is(err, context.Canceled) || measured != 1 {
			t.Errorf("%d measurements, %v", measured, err)
		}
	}
}

// TestRecordsThatCannotBeKept: an error of keep ends the run and is returned.
func TestRecordsThatCannotBeKept(t *testing.T) {
	full := errors.New("no space left")
	o := options(t, "mptcp/cubic", "f:1")
	if err := Run(t.Context(), o, func(any) error { return full }, io.Discard); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
}

func TestTimes(t *testing.T) {
	short, long := options(t, "mptcp", "f:10000"), options(t, "mptcp", "f:10000,f:10000000")
	more := short
	more.Runs = 10
	for name, o := range map[string]Options{"another workload": long, "more runs": more} {
		if got, before := o.Times(), short.Times(); got.Expected <= before.Expected || got.Bound <= before.Bound || got.Bound <= got.Expected {
			t.Errorf("%s: %v, not more than %v", name, o.Times(), short.Times())
		}
	}
	// Reference methods are measured only a few times, and single-link methods not when a link dies.
	reference := options(t, "tcp-wifi", "f:10000")
	reference.Runs = ReferenceRuns
	before := reference.Times()
	reference.Runs = 100
	if reference.Times() != before {
		t.Errorf("%v, not %v", reference.Times(), before)
	}
	if with, without := options(t, "tcp-wifi", "f:10000,dies:5000000").Times(), options(t, "tcp-wifi", "f:10000").Times(); with != without {
		t.Errorf("%v, not %v", with, without)
	}
}

func TestRefusedOptions(t *testing.T) {
	good := options(t, "mptcp", "f:10000")
	for want, change := range map[string]func(*Options){
		"runs: 0 is not within 1 and 1000": func(o *Options) { o.Runs = 0 },
		"workloads: there are none":        func(o *Options) { o.Workloads = nil },
		"methods: there are none":          func(o *Options) { o.Methods = nil },
		"gap: -1s is negative":             func(o *Options) { o.Gap = -time.Second },
	} {
		o := good
		change(&o)
		if err := o.Check(); err == nil || err.Error() != want {
			t.Errorf("%v, not %q", err, want)
		}
	}
}

// TestNotes: a transfer over two links that used only one is noted, unless WiFi died.
func TestNotes(t *testing.T) {
	entries, err := method.ParseList("mptcp/cubic,tcp-wifi")
	if err != nil {
		t.Fatal(err)
	}
	both, single := &method.Contestant{Entry: entries[0]}, &method.Contestant{Entry: entries[1]}
	alone := map[string]rig.Traffic{rig.WiFi: {DownBytes: 2_000_000, UpBytes: 1000}, rig.LTE: {DownBytes: 100, UpBytes: 60_000}}
	cases := []struct {
		name     string
		who      *method.Contestant
		workload string
		notes    int
	}{
		{"one link", both, "f:2000000", 1},
		{"that is all it has", single, "f:2000000", 0},
		{"too little to tell", both, "f:10000", 0},
		{"the other is dead", both, "dies:2000000", 0},
		{"the other direction", both, "up/f:2000000", 1},
	}
	for _, c := range cases {
		w, err := workload.Parse(c.workload)
		if err != nil {
			t.Fatal(err)
		}
		found := notes(c.who, w, []workload.Sample{{Bytes: w.Size}}, alone)
		if len(found) != c.notes {
			t.Errorf("%s: %v", c.name, found)
		}
	}
	if got := notes(both, workload.Workload{Kind: workload.File}, []workload.Sample{{Bytes: 2_000_000}}, alone); len(got) != 1 || got[0] != "rmnet0 carried less than 2 % of the bytes" {
		t.Errorf("%v", got)
	}
}
