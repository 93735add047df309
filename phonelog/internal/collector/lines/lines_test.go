package lines

import (
	"strings"
	"testing"
)

const good = `{"kind":"stop","t":1,"mono_s":1,"run":"0123456789abcdef","n":1,"reason":"x"}` + "\n"

func TestBadLines(t *testing.T) {
	c := New(300)
	if err := c.Check([]byte(good + good)); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"":                                    "line 1: the batch is empty",
		good[:10]:                             "line 1: it has no end",
		good + "\n":                           "line 2: it is not JSON",
		good + "{}x\n":                        "line 2: it is not JSON",
		"[]\n":                                "line 1: it is not a JSON object",
		"{}\n":                                `line 1: kind: "" is not known; known are battery, cell, clock, heartbeat, interface, location, myip, problem, routes, start, stop, wifi`,
		`{"kind":1}` + "\n":                   `line 1: kind: "" is not known; known are`,
		strings.Repeat(" ", 300) + good:       "line 1: it has 376 bytes; at most 300 are allowed",
		strings.Replace(good, "x", "\xff", 1): "line 1: it is not UTF-8",
		strings.Replace(good, `"n":1`, `"n":0`, 1):   "line 1: stop: n: minimum: got 0, want 1",
		strings.Replace(good, `"t":1`, `"t":"1"`, 1): "line 1: stop: t: got string, want number",
		strings.Replace(good, `,"n":1`, ``, 1):       "line 1: stop: missing property 'n'",
		strings.Replace(good, `"n"`, `"m":1,"n"`, 1): "line 1: stop: additional properties 'm' not allowed",
		strings.Replace(good, `"n"`, `"t":2,"n"`, 1): `line 1: "t" is there twice`,
	} {
		err := c.Check([]byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	line := `{"kind":"wifi","t":1763837000.123456,"mono_s":12345.678901,"run":"0123456789abcdef","n":12345,"why":"change","source":"nl80211","interface":"wlan0","enabled":true,"connected":true,"ssid":"eduroam","bssid":"3c:37:12:aa:bb:01","rssi_dbm":-61,"frequency_mhz":5180,"tx_mbps":390,"rx_mbps":433}` + "\n"
	batch := []byte(strings.Repeat(line, 1000))
	c := New(0)
	b.SetBytes(int64(len(batch)))
	for b.Loop() {
		if err := c.Check(batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
