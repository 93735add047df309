package workload

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestNotation(t *testing.T) {
	for text, want := range map[string]string{
		"f:10000": "f:10000", "up/f:10000": "up/f:10000", "s:20:50000": "s:20:50000", "c:40:8:50000@loss1": "c:40:8:50000@loss1",
		"bulk:10000:10000000": "bulk:10000:10000000", "dies:5000000@txdelay": "dies:5000000@txdelay",
		"rate:1500000000": "rate:1500000000", "rate:5@unshaped": "rate:5", "f:1@paper": "f:1",
	} {
		w, err := Parse(text)
		if err != nil || w.String() != want {
			t.Errorf("%s: %s, %v", text, w, err)
			continue
		}
		again, err := Parse(w.String())
		if err != nil || again != w {
			t.Errorf("%s: not the same read again: %+v %+v, %v", text, w, again, err)
		}
	}
}

// TestBadNotation has invalid input with the expected message.
func TestBadNotation(t *testing.T) {
	const kinds = "the kinds are f:SIZE, s:COUNT:SIZE, c:COUNT:WAYS:SIZE, bulk:SHORT:SIZE, dies:SIZE, rate:SIZE, each with up/ before it and @LINKS behind it if wanted"
	for text, want := range map[string]string{
		"":                  `workload "": ` + kinds,
		"g:1":               `workload "g:1": ` + kinds,
		"down/f:1":          `workload "down/f:1": ` + kinds,
		"f":                 `workload "f": it is written f:SIZE`,
		"f:1:2":             `workload "f:1:2": it is written f:SIZE`,
		"c:20:10000":        `workload "c:20:10000": it is written c:COUNT:WAYS:SIZE`,
		"f:0":               `workload "f:0": "0" is not a number from 1 to 20000000000`,
		"f:10k":             `workload "f:10k": "10k" is not a number from 1 to 20000000000`,
		"f:20000000001":     `workload "f:20000000001": "20000000001" is not a number from 1 to 20000000000`,
		"s:20000:1000001":   `workload "s:20000:1000001": that is more than 20000000000 bytes`,
		"c:4:8:10000":       `workload "c:4:8:10000": 8 at a time are more than the 4 that there are`,
		"f:1@moon":          `workload "f:1@moon": there are no links "moon"; there are paper, loss1, txdelay, r1, r2, unshaped`,
		"f:1@unshaped":      `workload "f:1@unshaped": f is for links that are shaped only`,
		"rate:1@paper":      `workload "rate:1@paper": rate is for links that are not shaped only`,
		"f:1,f:2,f:1@paper": `workload "f:1@paper": it is there twice`,
	} {
		if _, err := ParseList(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestTimes checks that an upload is slower than the download of the same bytes here,
// and that for every workload limit < expectation < bound.
func TestTimes(t *testing.T) {
	for _, text := range slices.Concat(Default(), Quick()) {
		w, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if limit := ms(w.Limit()); limit > w.Expect() || w.Expect() > w.Timeout() || w.Timeout() > w.Bound() || w.Expect() <= 0 {
			t.Errorf("%s: limit %v, expected %v, timeout %v, bound %v", w, limit, w.Expect(), w.Timeout(), w.Bound())
		}
		if math.IsInf(w.Limit(), 0) || w.Bound() > 10*time.Minute {
			t.Errorf("%s: limit %v, bound %v", w, w.Limit(), w.Bound())
		}
		if opposite := w; !w.Up && w.Kind == File {
			opposite.Up = true
			if opposite.Limit() < w.Limit()-5 {
				t.Errorf("%s: limit %.1f ms, its upload %.1f", w, w.Limit(), opposite.Limit())
			}
		}
	}
}

// FuzzParse checks that a parsed workload is formatted so that it parses to the same
// value, and that its times are finite.
func FuzzParse(f *testing.F) {
	for _, text := range append(Default(), "c:4:8:10000", "f:1@r2", "up/dies:1", "s:1", "rate:20000000000", "::@", "up/up/f:1") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		w, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(w.String()); err != nil || again != w {
			t.Errorf("%q is read as %+v and written as %s: %+v, %v", text, w, w, again, err)
		}
		if w.Expect() < 0 || w.Bound() < w.Expect() || math.IsInf(w.Limit(), 0) || math.IsNaN(w.Limit()) {
			t.Errorf("%q: expected %v, bound %v, limit %v", text, w.Expect(), w.Bound(), w.Limit())
		}
	})
}
