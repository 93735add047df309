package rig

import (
	"testing"

	"mplab/bench/mpflex/links"
	"mplab/linkem/probe"
)

// TestCompare checks that a link that differs from the requested one is named, with the
// difference.
func TestCompare(t *testing.T) {
	want := links.Link{DownKbps: 7000, UpKbps: 2000, RTTMs: 50, LossPercent: 1}
	type measured struct {
		rtt, far, down, up, loss float64
		sent                     int
	}
	right := measured{50.6, 54.7, 7001, 1999, 2, 500}
	cases := map[string]struct {
		change func(*measured)
		want   string
	}{
		"as wanted":     {func(*measured) {}, ""},
		"a little late": {func(m *measured) { m.rtt, m.far = 52.1, 56.3 }, ""},
		"slow":          {func(m *measured) { m.rtt = 60 }, "wlan0: RTT in ms: measured 60.0, should be 50.0 ± 4.0"},
		"far":           {func(m *measured) { m.far = 66.2 }, "wlan0: RTT to the origin in ms: measured 66.2, should be 54.0 ± 4.0"},
		"wide":          {func(m *measured) { m.down = 7300 }, "wlan0: kbit/s down: measured 7300.0, should be 7000.0 ± 210.0"},
		"narrow":        {func(m *measured) { m.up = 1900 }, "wlan0: kbit/s up: measured 1900.0, should be 2000.0 ± 60.0"},
		"whole":         {func(m *measured) { m.loss, m.sent = 0, 2000 }, "wlan0: lost of 2000 echoes: measured 0.0, should be 39.8 ± 25.5"},
		"lossy":         {func(m *measured) { m.loss = 7 }, "wlan0: lost of 500 echoes: measured 35.0, should be 10.0 ± 13.0"},
	}
	for name, c := range cases {
		m := right
		c.change(&m)
		near := probe.Result{RTT: probe.RTT{Median: m.rtt}, DownKbps: &m.down, UpKbps: &m.up, LossPercent: m.loss, LossSent: m.sent}
		got := ""
		if err := compare("wlan0", want, near, probe.Result{RTT: probe.RTT{Median: m.far}}); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestNoLossIsNoLoss(t *testing.T) {
	for loss, fine := range map[float64]bool{0: true, 6.7: false} { // of 15 echoes
		if err := lossIs("wlan0", probe.Result{LossPercent: loss, LossSent: 15}, 0); (err == nil) != fine {
			t.Errorf("%v %%: %v", loss, err)
		}
	}
}
