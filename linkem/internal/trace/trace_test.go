package trace

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestTraceIsReadAndWritten(t *testing.T) {
	for _, text := range []string{"0\n1\n1\n5\n", "0\n1\n1\n5", "00\n1\r\n1\r\n5\r\n"} {
		trace, err := Read(strings.NewReader(text))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if !slices.Equal(trace.ms, []uint32{0, 1, 1, 5}) || trace.LengthMs() != 5 {
			t.Errorf("%q: %v", text, trace.ms)
		}
		if got := string(trace.Bytes()); got != "0\n1\n1\n5\n" {
			t.Errorf("written as %q", got)
		}
	}
}

func TestBadTracesAreRefused(t *testing.T) {
	for text, problem := range map[string]string{
		"":                         "1: no opportunities: a trace has at least one line",
		"0\n0\n":                   "2: the last time is 0 ms",
		"1\n\n2\n":                 "2: an empty line; each has a whole number of milliseconds",
		"5\n4\n":                   "2: 4 ms come after 5 ms; times must not decrease",
		"1\n-2\n":                  `2: "-2" is not a whole number of milliseconds`,
		"1\n2 \n":                  `2: "2 " is not a whole number of milliseconds`,
		"# made by hand\n1\n":      `1: "# made by hand" is not a whole number of milliseconds`,
		"1\n1.5\n":                 `2: "1.5" is not a whole number of milliseconds`,
		"604800001\n":              "1: 604800001 ms are more than 604800000 ms, a week",
		"99999999999999999999\n":   "1: 99999999999999999999 ms are more than",
		strings.Repeat("x", 1<<17): "1: a line that is no number of milliseconds: is this a trace?",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), problem) {
			t.Errorf("%.20q:\n got  %v\n want %s", text, err, problem)
		}
	}
}

func TestSummary(t *testing.T) {
	var ms []uint32
	for i := uint32(1); i <= 1000; i++ { // one in each ms of the first second, none in the next, two in the third
		ms = append(ms, i)
	}
	ms = append(ms, 2001, 3000)
	trace, err := New(ms)
	if err != nil {
		t.Fatal(err)
	}
	want := Summary{Opportunities: 1002, Seconds: 3, MeanKbps: 12 * 1002.0 / 3, LeastKbps: 0, MostKbps: 12_000, LongestGapMs: 1001}
	if got := trace.Summarise(); math.Abs(got.MeanKbps-4008) > 1e-9 || got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("1\n2\n2\n"))
	f.Add([]byte("7"))
	f.Fuzz(func(t *testing.T, text []byte) {
		trace, err := Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		again, err := Read(bytes.NewReader(trace.Bytes()))
		if err != nil || !slices.Equal(again.ms, trace.ms) {
			t.Errorf("%q is not read as it was written: %v", text, err)
		}
	})
}
