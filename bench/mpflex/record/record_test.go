package record

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"mplab/bench/mpflex/method"
	"mplab/bench/mpflex/rig"
	"mplab/bench/mpflex/workload"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	yes := true
	want := &Results{
		Run:    Run{Event: EventRun, Started: 1.5, Seed: 2, Runs: 3, Workloads: []string{"f:1"}, Methods: []string{"mptcp/bbr"}, Kernel: "6.18", CPUs: 2, Go: "go1.27", Rootless: true},
		Links:  []Links{{Event: EventLinks, Profile: "paper", Checked: []rig.Checked{{Link: "wlan0"}}, Nice: -15}},
		Absent: []Absent{{Event: EventAbsent, Method: "mpflex", Congestion: "bbr", Profile: "paper", Reason: "not there"}},
		Restarts: []Restart{
			{Event: EventRestart, Method: "yamux-mptcp", Congestion: "bbr", Reason: "1 of 2 paths"},
		},
		Measurements: []Measurement{{
			Event: EventMeasurement, Round: 1, Profile: "paper", Workload: "f:1", Method: "mptcp", Congestion: "bbr",
			Sample:   workload.Sample{Label: "file", Bytes: 1, Ms: 122.5, FirstByteMs: 112, LimitMs: 69, Error: "late"},
			Links:    map[string]rig.Traffic{"wlan0": {UpBytes: 1, DownBytes: 2, UpLost: 3, DownLost: 4}},
			Observed: &method.Proof{Multipath: &yes, Congestion: []string{"bbr"}, Carriers: []rig.Socket{{Congestion: "bbr", Cwnd: 10}}},
			Faults:   []string{"a"}, Notes: []string{"b"}, Host: rig.Load{Others: 0.5},
		}},
	}
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for _, r := range []any{want.Run, want.Links[0], want.Absent[0], want.Measurements[0], want.Restarts[0]} {
		if err := encoder.Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Read(&lines)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nis not\n%+v", got, want)
	}
}

// TestBadLines has invalid input with the expected message.
func TestBadLines(t *testing.T) {
	const head = `{"event":"run"}` + "\n"
	for text, want := range map[string]string{
		"":                             "there are no lines",
		"{}":                           `line 1: unknown event ""`,
		head + `{"event":"walk"}`:      `line 2: unknown event "walk"`,
		head + head:                    `line 2: a run begins with one line of event "run", and has no other`,
		`{"event":"links"}`:            `line 1: a run begins with one line of event "run", and has no other`,
		head + `{"event":"links"`:      "line 2: unexpected end of JSON input",
		`{"event":"run","runs":"ten"}`: "line 1: json: cannot unmarshal string into Go struct field Run.runs of type int",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || err.Error() != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}
