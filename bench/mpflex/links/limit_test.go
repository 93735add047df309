package links

import (
	"math"
	"testing"
)

// near tolerates the difference caused by the assumed size of the request.
func near(got, want float64) bool { return math.Abs(got-want) <= 0.012*want }

func limits(t *testing.T, name string) Limits {
	t.Helper()
	p, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return Limits{Profile: p, Request: 17}
}

// TestDownloadLimits has the published limits of the prototype's measurements, in ms.
func TestDownloadLimits(t *testing.T) {
	cases := map[string]map[int]float64{
		"paper":   {10_000: 69, 50_000: 90, 100_000: 115, 250_000: 192, 500_000: 320, 1_000_000: 575, 2_000_000: 1086, 5_000_000: 2618, 10_000_000: 5172},
		"loss1":   {50_000: 90, 500_000: 320, 2_000_000: 1086},
		"txdelay": {50_000: 68, 100_000: 94, 250_000: 170, 500_000: 298, 1_000_000: 554},
		"r1":      {100_000: 126, 500_000: 300, 2_000_000: 955},
		"r2":      {100_000: 171, 500_000: 342, 2_000_000: 934},
	}
	for name, sizes := range cases {
		for size, want := range sizes {
			if got := limits(t, name).Download(size); !near(got, want) {
				t.Errorf("%s, %d bytes: %.1f ms, not %.0f", name, size, got, want)
			}
		}
	}
}

func TestBundleLimits(t *testing.T) {
	l := limits(t, Paper)
	cases := []struct {
		count, ways, size int
		want              float64
	}{{20, 4, 10_000, 347}, {40, 8, 50_000, 1086}, {50, 8, 100_000, 2618}, {10, 1, 10_000, 694}, {20, 1, 50_000, 1797}, {20, 1, 100_000, 2308}}
	for _, c := range cases {
		if got := Bundle(l.Download, c.count, c.ways, c.size); !near(got, c.want) {
			t.Errorf("%+v: %.1f ms", c, got)
		}
	}
}

// TestLimitsOfDyingWiFi: a link that dies late changes nothing, one that dies at once leaves only LTE, and in between
// WiFi contributes the data that it delivered before.
func TestLimitsOfDyingWiFi(t *testing.T) {
	const size = 5_000_000
	for name, l := range map[string]struct{ whole, dying, lte func(t float64) float64 }{
		"download": {
			func(float64) float64 { return limits(t, Paper).Download(size) },
			func(at float64) float64 { return limits(t, Paper).DownloadDying(size, at) },
			func(float64) float64 { return limits(t, Paper).DownloadLTE(size) },
		},
		"upload": {
			func(float64) float64 { return limits(t, Paper).Upload(size) },
			func(at float64) float64 { return limits(t, Paper).UploadDying(size, at) },
			func(float64) float64 { return limits(t, Paper).UploadLTE(size) },
		},
	} {
		whole, alone := l.whole(0), l.lte(0)
		if got := l.dying(2 * alone); got != whole {
			t.Errorf("%s: %.1f ms when WiFi dies after the end, not %.1f", name, got, whole)
		}
		if got := l.dying(1); math.Abs(got-alone) > 25 {
			t.Errorf("%s: %.1f ms when WiFi dies at once, with LTE alone %.1f", name, got, alone)
		}
		earlier, later := l.dying(300), l.dying(900)
		if !(whole < later && later < earlier && earlier < alone) {
			t.Errorf("%s: not in order: whole %.1f, dies at 900 ms %.1f, at 300 ms %.1f, LTE alone %.1f", name, whole, later, earlier, alone)
		}
	}
	// WiFi delivers 880 bytes/ms from 58.7 ms to 750 ms; LTE delivers the rest at 1148.1 bytes/ms from 68.7 ms on.
	want := 68.7 + (size*1500.0/1448-880*(750-58.7))/1148.1
	if got := limits(t, Paper).DownloadDying(size, 750); !near(got, want) {
		t.Errorf("download, WiFi dies at 750 ms: %.1f ms, not %.1f", got, want)
	}
}

func TestUploadLimit(t *testing.T) {
	// Both links deliver at their uplink rates, delayed by 25 and 35 ms; then the answer must return.
	const size = 1_000_000
	want := (size*1500.0/1448+252.5*25+285.75*35)/(252.5+285.75) + 2 + 2 + 25
	if got := limits(t, Paper).Upload(size); !near(got, want) {
		t.Errorf("%.1f ms, not %.1f", got, want)
	}
	// One packet: to the proxy, which needs a round trip to connect to the origin, to the origin and back.
	if got, want := limits(t, Paper).Upload(1), 25+4+2+2+25.0; got < want || got > want+2 {
		t.Errorf("one byte: %.1f ms, not a little more than %.1f", got, want)
	}
}

func TestUnknownProfile(t *testing.T) {
	const want = `there are no links "papper"; there are paper, loss1, txdelay, r1, r2, unshaped`
	if _, err := Find("papper"); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}
