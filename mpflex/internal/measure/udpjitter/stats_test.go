package udpjitter

import (
	"math"
	"slices"
	"testing"
	"time"
)

// TestReceiver checks that jitter is computed as in RFC 3550 appendix A.8: transit
// times of 10, 26, 10 and 10 ms differ by 16, 16 and 0.
func TestReceiver(t *testing.T) {
	const ms = int64(time.Millisecond)
	var r receiver
	for _, step := range []struct {
		number        uint32
		sent, arrived int64
		fresh         bool
	}{
		{0, 0, 10 * ms, true},
		{2, 20 * ms, 46 * ms, true},
		{1, 10 * ms, 20 * ms, true}, // arrives after 2
		{2, 20 * ms, 50 * ms, false},
		{200, 2000 * ms, 2010 * ms, true},
		{0, 0, 3000 * ms, false},
	} {
		if fresh := r.take(step.number, step.sent, step.arrived); fresh != step.fresh {
			t.Errorf("%d: %v", step.number, fresh)
		}
	}
	if r.arrived != 4 || r.reordered != 1 || r.duplicates != 2 || r.next != 201 {
		t.Errorf("%+v", r)
	}
	j := 16.0 / 16
	j += (16 - j) / 16
	j += (0 - j) / 16
	if math.Abs(r.jitterNs/1e6-j) > 1e-9 {
		t.Errorf("jitter %v ms, want %v", r.jitterNs/1e6, j)
	}
}

// TestHeldForOrder has datagrams that arrive as 0, 2, 1, 4 (3 is lost) and are
// delivered in order: only 2 waits, for 1.
func TestHeldForOrder(t *testing.T) {
	const ms = int64(time.Millisecond)
	journeys := []journey{{0, 0, 25 * ms}, {2, 20 * ms, 45 * ms}, {1, 10 * ms, 52 * ms}, {4, 40 * ms, 60 * ms}}
	if got, want := heldOf(slices.Clone(journeys)), []int64{0, 0, 7 * ms, 0}; !slices.Equal(got, want) {
		t.Errorf("held for %v, want %v", got, want)
	}
	if got, want := delaysOf(journeys), []int64{25 * ms, 25 * ms, 42 * ms, 20 * ms}; !slices.Equal(got, want) {
		t.Errorf("delays %v, want %v", got, want)
	}
	direction := newDirection(5, 4, 1, 0, 0, journeys)
	if *direction.LeastMs != 20 || direction.Held.Max != 7 || direction.Held.Mean != 1.75 {
		t.Errorf("%v, %+v", *direction.LeastMs, direction.Held)
	}
	if nothing := newDirection(5, 0, 0, 0, 0, nil); nothing.LeastMs != nil || nothing.Held != nil {
		t.Errorf("something is said of nothing: %+v", nothing)
	}
}

func TestDistribution(t *testing.T) {
	const ms = int64(time.Millisecond)
	// Clocks that differ by years must not cost precision.
	const offset = -int64(30 * 365 * 24 * time.Hour)
	values := []int64{offset + 8*ms, offset + 2*ms, offset + 4*ms, offset + 4*ms, offset + 4*ms, offset + 5*ms, offset + 5*ms, offset + 7*ms, offset + 9*ms}
	got := newVariation(values)
	want := Distribution{Min: 0, Mean: 3.333, Stdev: 2.108, P5: 0.8, P25: 2, Median: 3, P75: 5, P95: 6.6, P99: 6.92, Max: 7}
	if *got != want {
		t.Errorf("got  %+v\nwant %+v", *got, want)
	}
	if values[0] != offset+8*ms {
		t.Error("the values were changed")
	}
	if newDistribution(nil) != nil || newVariation(nil) != nil || percentiles(nil) != nil {
		t.Error("something is said of nothing")
	}
	if one := newDistribution([]int64{3 * ms}); *one != (Distribution{3, 3, 0, 3, 3, 3, 3, 3, 3, 3}) {
		t.Errorf("%+v", one)
	}
	all := percentiles([]int64{0, 100 * ms})
	for i, v := range all {
		if v != float64(i) {
			t.Errorf("percentile %d is %v", i, v)
		}
	}
	if len(all) != 101 {
		t.Errorf("%d percentiles", len(all))
	}
}

// TestGaps has silences, including those before the first answer and after the last
// one.
func TestGaps(t *testing.T) {
	began := time.Unix(1000, 0)
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	c := &client{options: Options{Period: 10 * time.Millisecond}, sent: 60, collector: newCollector(100 * time.Millisecond)}
	c.collector.begin(began)
	for i, ms := range []int{100, 110, 209, 409, 419} {
		c.collector.take(message{order: uint32(i + 1)}, at(ms), at(ms).UnixNano())
	}
	r := c.result(message{}, false, at(600))
	want := []Gap{{0, 100}, {0.209, 200}, {0.419, 181}}
	if r.GapCount != len(want) || r.LongestGap != 200 || len(r.Gaps) != len(want) {
		t.Fatalf("%+v", r)
	}
	for i := range want {
		if r.Gaps[i] != want[i] {
			t.Errorf("got %+v, want %+v", r.Gaps[i], want[i])
		}
	}
}

func TestGapsAreBounded(t *testing.T) {
	c := &client{collector: newCollector(1)}
	c.collector.begin(time.Unix(0, 0))
	for i := range maxGaps + 5 {
		c.collector.take(message{order: uint32(i + 1)}, time.Unix(int64(i)+1, 0), 0)
	}
	if r := c.result(message{}, false, time.Unix(0, 0)); r.GapCount != maxGaps+5 || len(r.Gaps) != maxGaps {
		t.Errorf("%d counted, %d listed", r.GapCount, len(r.Gaps))
	}
}
