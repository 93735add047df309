package ends

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"mplab/analysis/mptrace/packet"
)

// sum adds the rows of a path's direction.
func (r *Result) sum(iface, direction string) (all PathEnds) {
	for _, row := range r.PathEnds {
		if row.Interface == iface && row.Direction == direction {
			all.Sent += row.Sent
			all.Arrived += row.Arrived
			all.Lost += row.Lost
			all.WireLost += row.WireLost
			all.BytesLost += row.BytesLost
			all.Ambiguous += row.Ambiguous
			all.NotJudged += row.NotJudged
			all.Duplicated += row.Duplicated
			all.Reordered += row.Reordered
			all.Unseen += row.Unseen
			all.Retransmitted += row.Retransmitted
			all.Delays += row.Delays
		}
	}
	return all
}

func TestLossesAndDelaysAreThoseOfTheNetwork(t *testing.T) {
	for _, c := range []struct {
		name      string
		mss, size uint32
		merge     int64
		six       bool
		overtaken float64
		offset    int64
		drift     float64
		loss      float64
		gap       int64
	}{
		{name: "plain", size: 1400, mss: 0, loss: 0.02, offset: 3_600e9, drift: 40e-6},
		{name: "super-segments", size: 14_000, mss: 1400, loss: 0.02, offset: -5e9, drift: -25e-6},
		{name: "merged", size: 1400, mss: 0, merge: 1e6, gap: 150e3, loss: 0.02, offset: 17e6, drift: 3e-6},
		{name: "both", size: 14_000, mss: 1400, merge: 1e6, loss: 0.01},
		{name: "reordered", size: 1400, mss: 0, loss: 0.01, overtaken: 0.05, offset: 1e9},
		{name: "IPv6", size: 1400, mss: 0, loss: 0.02, six: true, drift: 90e-6},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(11)
			n.offset, n.drift, n.merge = c.offset, c.drift, c.merge
			var end int64
			for path := range int32(2) {
				delay := int64(8e6 + 20e6*int64(path))
				down := &wire{delay: delay, jitter: 300e3, loss: c.loss, overtaken: c.overtaken, double: 0.003}
				up := &wire{delay: delay, jitter: 200e3, loss: c.loss, overtaken: c.overtaken}
				flow := n.talk(path, 40_000+uint16(path), up, down)
				flow.six, flow.mss = c.six, c.mss
				if c.gap == 0 {
					c.gap = 2e6
				}
				at := flow.open(n.start + int64(path)*1e8)
				end = flow.bulk(at+1e6, 6000, c.size, c.mss, c.gap)
				flow.after(end)
			}
			r := n.match(t, Options{Samples: -1})
			check(t, n, r)
			if r.Clock.Path != "wlan0" || !r.Clock.DriftKnown {
				t.Errorf("clock %+v", r.Clock)
			}
			offset := float64(n.clock(proxyEnd, r.Clock.StartNS)-r.Clock.StartNS) / 1e6
			if math.Abs(r.Clock.OffsetMS-offset) > 0.3 || r.Clock.UncertaintyMS < 7.9 || r.Clock.UncertaintyMS > 8.5 {
				t.Errorf("offset %f ms, truth %f; %+v", r.Clock.OffsetMS, offset, r.Clock)
			}
			if off := math.Abs(r.Clock.DriftPPM - c.drift*1e6); off > r.Clock.DriftErrorPPM || r.Clock.DriftErrorPPM > 30 {
				t.Errorf("drift %f ppm ± %f, truth %f", r.Clock.DriftPPM, r.Clock.DriftErrorPPM, c.drift*1e6)
			}
		})
	}
}

// check compares all counts and delays with the true values.
func check(t *testing.T, n *network, r *Result) {
	t.Helper()
	for path, truths := range n.truth {
		for dir, direction := range []string{"up", "down"} {
			want, got := truths[dir], r.sum([]string{"wlan0", "rmnet0"}[path], direction)
			what := fmt.Sprintf("path %d %s", path, direction)
			lost, wire := want.lost, want.wireLost
			if got.NotJudged > 0 { // packets without identification
				lost, wire = lost-want.acksLost, wire-want.acksLost
			}
			if got.Lost != lost || got.WireLost != wire || got.BytesLost != want.bytesLost || got.Sent+got.NotJudged != want.sent {
				t.Errorf("%s: sent %d, lost %d, on the wire %d, bytes %d; truth %d %d %d %d; not judged %d", what,
					got.Sent, got.Lost, got.WireLost, got.BytesLost, want.sent, lost, wire, want.bytesLost, got.NotJudged)
			}
			if got.Unseen != 0 || got.Retransmitted != want.retransmitted {
				t.Errorf("%s: unseen %d, retransmitted %d, truth %d", what, got.Unseen, got.Retransmitted, want.retransmitted)
			}
			if got.Ambiguous == 0 && got.Reordered != want.overtaken() || got.Duplicated != want.duplicated {
				t.Errorf("%s: reordered %d, duplicated %d; truth %d %d", what, got.Reordered, got.Duplicated, want.overtaken(), want.duplicated)
			}
			compareDelays(t, what, delaysOf(r, []string{"wlan0", "rmnet0"}[path], direction), want.delays(), got.Ambiguous, 0.4)
		}
	}
}

// delaysOf returns the sorted delays of a path; all were kept.
func delaysOf(r *Result, iface, direction string) (ms []float64) {
	for _, row := range r.PathEnds {
		if row.Interface != iface || row.Direction != direction {
			continue
		}
		for _, o := range r.OWD {
			if o.ConnectionID == row.ConnectionID && o.SubflowID == row.SubflowID && o.Direction == direction {
				ms = append(ms, o.OWDMS)
			}
		}
	}
	slices.Sort(ms)
	return ms
}

func compareDelays(t *testing.T, what string, got []float64, want []int64, ambiguous int64, uncertainty float64) {
	t.Helper()
	if int64(len(got))+ambiguous != int64(len(want)) {
		t.Errorf("%s: %d delays, truth %d, ambiguous %d", what, len(got), len(want), ambiguous)
		return
	}
	if ambiguous > 0 {
		return
	}
	slices.Sort(want)
	worst := 0.0
	for i := range got {
		worst = max(worst, math.Abs(got[i]-float64(want[i])/1e6))
	}
	if worst > uncertainty {
		t.Errorf("%s: a delay is off by %f ms", what, worst)
	}
}

func TestSameClock(t *testing.T) {
	n := newNetwork(3)
	flow := n.talk(0, 40_000, &wire{delay: 1e6}, &wire{delay: 30e6, loss: 0.01})
	end := flow.bulk(flow.open(n.start), 500, 1000, 0, 1e6)
	flow.after(end)
	r := n.match(t, Options{SameClock: true, Samples: -1})
	if r.Clock.OffsetMS != 0 || !r.Clock.Same || r.Clock.UncertaintyMS != 0 {
		t.Errorf("%+v", r.Clock)
	}
	row := r.sum("wlan0", "down")
	if truth := n.truth[0][Down]; row.Lost != truth.lost {
		t.Errorf("lost %d, truth %d", row.Lost, truth.lost)
	}
	compareDelays(t, "down", delaysOf(r, "wlan0", "down"), n.truth[0][Down].delays(), 0, 1e-6)
	compareDelays(t, "up", delaysOf(r, "wlan0", "up"), n.truth[0][Up].delays(), 0, 1e-6)
}

var _ = packet.SYN
