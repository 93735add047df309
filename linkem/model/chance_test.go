package model

import (
	"math"
	"slices"
	"testing"
)

// outcome is the result for one packet: the delays of its copies that left (none, one or two), in ns.
type outcome []int64

// outcomes sends n packets through a direction, so far apart that they do not interact.
func outcomes(seed uint64, params Params, n int) []outcome {
	const apart = 1000 * ms
	w := newWay(params, seed)
	result := make([]outcome, n)
	for i := range result {
		at := int64(i) * apart
		w.Arrive(at, packet(100))
		w.run(at + apart - 1)
		for _, d := range w.left {
			result[i] = append(result[i], d.at-at)
		}
		w.left = w.left[:0]
	}
	return result
}

func TestGilbertElliottLosesInBursts(t *testing.T) {
	const n = 200_000
	for _, c := range []struct {
		model              LossModel
		share, burst, near float64
	}{
		// The share of time in the bad state is p/(p+r), and a loss burst in it has length 1/r.
		{LossModel{PPercent: 1, RPercent: 20, BadLossPercent: 100}, 0.01 / 0.21, 5, 0.05},
		{LossModel{PPercent: 0.5, RPercent: 50, BadLossPercent: 100}, 0.005 / 0.505, 2, 0.05},
		// With r = 100 % no two consecutive packets are bad; with losses in both states the share is the mean of both.
		{LossModel{PPercent: 10, RPercent: 100, BadLossPercent: 100}, 0.1 / 1.1, 1, 0.05},
		{LossModel{PPercent: 5, RPercent: 15, GoodLossPercent: 1, BadLossPercent: 40}, 0.75*0.01 + 0.25*0.4, 0, 0.05},
	} {
		w := newWay(Params{LossModel: &c.model}, 5)
		for i := range n {
			w.Arrive(int64(i), packet(100))
			w.run(int64(i))
			w.left = w.left[:0]
		}
		counters := w.CountersAt(n)
		share := float64(counters.DroppedLoss) / n
		if math.Abs(share/c.share-1) > c.near {
			t.Errorf("%+v: %.5f lost, want %.5f", c.model, share, c.share)
		}
		burst := float64(counters.DroppedLoss) / float64(counters.LossBursts)
		if c.burst > 0 && math.Abs(burst/c.burst-1) > c.near {
			t.Errorf("%+v: %.3f packets lost in turn, want %.3f", c.model, burst, c.burst)
		}
	}
}

func TestGilbertElliottWithoutBadStateIsRandomLoss(t *testing.T) {
	model := LossModel{PPercent: 0, RPercent: 100, GoodLossPercent: 5, BadLossPercent: 100}
	random, modelled := outcomes(3, Params{LossPercent: 5}, 5000), outcomes(3, Params{LossModel: &model}, 5000)
	if !slices.EqualFunc(random, modelled, slices.Equal) {
		t.Error("other packets were lost")
	}
}

// TestChanceOfOneConditionDoesNotShiftAnother changes one condition at a time: the other effects on the packets must
// not change.
func TestChanceOfOneConditionDoesNotShiftAnother(t *testing.T) {
	const n = 3000
	base := Params{
		DelayMs: 50, JitterMs: 5, JitterDistribution: Normal, LossPercent: 4, DuplicatePercent: 6, ReorderPercent: 8,
	}
	before := outcomes(9, base, n)
	skipped := func(o outcome) bool { return len(o) > 0 && o[0] == 0 }
	lost := func(o outcome) bool { return len(o) == 0 }
	doubled := func(o outcome) bool { return len(o) == 2 }
	for _, c := range []struct {
		name   string
		change func(*Params)
		fewer  func(outcome) bool // differences that the change itself may cause
	}{
		{"loss", func(p *Params) { p.LossPercent = 0 }, lost},
		{"loss model", func(p *Params) { p.LossPercent, p.LossModel = 0, &LossModel{RPercent: 50, BadLossPercent: 100} }, lost},
		{"duplicate", func(p *Params) { p.DuplicatePercent = 0 }, doubled},
		{"reorder", func(p *Params) { p.ReorderPercent = 0 }, skipped},
	} {
		params := base
		c.change(&params)
		after := outcomes(9, params, n)
		altered := 0
		for i := range before {
			if c.fewer(before[i]) {
				altered++
				if c.fewer(after[i]) {
					t.Fatalf("%s: packet %d: still %v", c.name, i, after[i])
				}
			} else if !slices.Equal(before[i], after[i]) {
				t.Fatalf("%s: packet %d: %v, was %v", c.name, i, after[i], before[i])
			}
		}
		if altered < n/50 {
			t.Errorf("%s: only %d packets altered", c.name, altered)
		}
	}
	wider := base
	wider.JitterMs = 10
	for i, after := range outcomes(9, wider, n) {
		if lost(after) != lost(before[i]) || doubled(after) != doubled(before[i]) || skipped(after) != skipped(before[i]) {
			t.Fatalf("jitter: packet %d: %v, was %v", i, after, before[i])
		}
		if len(after) > 0 && !skipped(after) {
			if a, b := after[0]-50*ms, before[i][0]-50*ms; math.Abs(float64(a-2*b)) > 2 {
				t.Fatalf("jitter: packet %d: %d ns of twice the jitter, was %d", i, a, b)
			}
		}
	}
}

// TestJitterFollowsTheTablesOfNetem compares with the quantiles of the tables of
// iproute2 6.1 (normal.dist, pareto.dist, paretonormal.dist), divided by their scale of
// 8192.
func TestJitterFollowsTheTablesOfNetem(t *testing.T) {
	at := []float64{0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99}
	for name, table := range map[string][]float64{
		Normal:       {-2.334, -1.282, -0.674, 0, 0.675, 1.281, 2.327},
		Pareto:       {-0.662, -0.619, -0.532, -0.320, 0.117, 0.872, 4},
		ParetoNormal: {-1.080, -0.785, -0.568, -0.240, 0.256, 0.974, 3.582},
		Uniform:      {-0.98, -0.8, -0.5, 0, 0.5, 0.8, 0.98},
	} {
		d := distributionOf(name)
		for i, u := range at {
			if got := d.quantile(u); math.Abs(got-table[i]) > 0.01 {
				t.Errorf("%s at %g: %.4f, netem has %.4f", name, u, got, table[i])
			}
		}
		const n = 20_000
		ways := []float64{}
		for _, o := range outcomes(2, Params{DelayMs: 100, JitterMs: 10, JitterDistribution: name}, n) {
			ways = append(ways, float64(o[0])/1e6)
		}
		slices.Sort(ways)
		for i, u := range at {
			if got, want := ways[int(u*n)], 100+10*table[i]; math.Abs(got-want) > 0.8 {
				t.Errorf("%s: %.2f ms at %g, want %.2f", name, got, u, want)
			}
		}
		if ways[0] < 100+10*d.least || float64(newWay(Params{DelayMs: 100, JitterMs: 10, JitterDistribution: name}, 1).ShortestWay()) > ways[0]*1e6 {
			t.Errorf("%s: %.3f ms is below what was said to be the least", name, ways[0])
		}
	}
}

func TestJitterNeverReordersInAnyDistribution(t *testing.T) {
	for name := range distributions {
		w := newWay(Params{DelayMs: 20, JitterMs: 15, JitterDistribution: name}, 3)
		var order []*Frame
		for i := range 2000 {
			f := packet(100)
			order = append(order, f)
			w.Arrive(int64(i)*ms, f)
			w.run(int64(i) * ms)
		}
		w.run(10_000 * ms)
		for i, d := range w.left {
			if d.frame != order[i] || d.at < int64(i)*ms {
				t.Fatalf("%s: packet %d left at the wrong place or time", name, i)
			}
		}
	}
}

func TestReorderedPacketsSkipTheDelay(t *testing.T) {
	const n = 5000
	w := newWay(Params{DelayMs: 20, JitterMs: 3, ReorderPercent: 10}, 4)
	sent := map[*Frame]int64{}
	for i := range n {
		f := packet(100)
		sent[f] = int64(i) * ms
		w.Arrive(sent[f], f)
		w.run(sent[f])
	}
	w.run(n*ms + 100*ms)
	overtaking, latest := 0, int64(-1)
	for _, d := range w.left {
		at := sent[d.frame]
		if way := d.at - at; way != 0 && (way < 17*ms || way > 24*ms) {
			t.Fatalf("a way of %d ns is neither none nor the delay", way)
		}
		if at < latest {
			continue // it was overtaken
		}
		latest = at
		if d.at == at && at > 0 {
			overtaking++
		}
	}
	if got := int(w.CountersAt(n * ms).Reordered); got != overtaking || got < n/12 || got > n/8 {
		t.Errorf("%d counted as reordered, %d overtook others, asked for %d", got, overtaking, n/10)
	}
}

func TestReorderingDoesNotPassTheQueue(t *testing.T) {
	w := newWay(Params{RateKbps: 8000, DelayMs: 20, ReorderPercent: 100}, 4)
	first, second := packet(1000), packet(1000)
	w.Arrive(0, first)
	w.Arrive(0, second)
	w.run(100 * ms)
	if w.left[0].frame != first || !slices.Equal(w.times(), []int64{ms, 2 * ms}) {
		t.Errorf("departures %v", w.times())
	}
}

func TestDuplicatesFollowTheirOriginals(t *testing.T) {
	w := newWay(Params{RateKbps: 8000, DuplicatePercent: 100, Queue: Queue{Packets: 3}}, 4)
	f := packet(1000)
	f.Data[20] = 7
	w.Arrive(0, f)
	if !w.Arrive(0, packet(1000)) {
		t.Error("the original was refused")
	}
	w.run(100 * ms)
	if !slices.Equal(w.times(), []int64{ms, 2 * ms, 3 * ms}) {
		t.Errorf("departures %v", w.times())
	}
	if copied := w.left[1].frame; copied == f || !slices.Equal(copied.Data, f.Data) {
		t.Error("the second is not a copy of the first")
	}
	if c := w.CountersAt(0); c.Duplicated != 2 || c.DroppedQueue != 1 || c.PacketsIn != 2 || c.PacketsOut != 3 || w.heldBytes != 0 {
		t.Errorf("%+v", c)
	}
}

func TestChanceLeavesOtherFramesAlone(t *testing.T) {
	params := Params{DelayMs: 10, JitterMs: 5, LossPercent: 50, DuplicatePercent: 50, ReorderPercent: 50}
	alone, mixed := newWay(params, 6), newWay(params, 6)
	ways := func(w *way) (result []int64) {
		for _, d := range w.left {
			if d.frame.ip {
				result = append(result, d.at)
			}
		}
		return result
	}
	for i := range int64(200) {
		at := i * 100 * ms
		alone.Arrive(at, packet(100))
		alone.run(at + 50*ms)
		mixed.Arrive(at, packet(100))
		mixed.run(at + 50*ms)
		arp := packet(46)
		arp.ip = false
		mixed.Arrive(at+60*ms, arp)
		mixed.run(at + 90*ms)
		if last := mixed.left[len(mixed.left)-1]; last.frame != arp || last.at != at+70*ms {
			t.Fatal("a frame that is not IP did not get the plain delay")
		}
	}
	if !slices.Equal(ways(alone), ways(mixed)) {
		t.Error("other frames took numbers of the packets")
	}
}

func TestChanceGoesOnIfAsked(t *testing.T) {
	params := Params{LossModel: &LossModel{PPercent: 10, RPercent: 10, BadLossPercent: 90}}
	lost := func(change func(w *way)) (fates []bool) {
		w := newWay(params, 7)
		for i := range int64(400) {
			if i == 200 {
				change(w)
			}
			fates = append(fates, !w.Arrive(i, packet(100)))
		}
		return fates
	}
	plain := lost(func(*way) {})
	delayed := params
	delayed.DelayMs = 10
	if !slices.Equal(plain, lost(func(w *way) { w.Change(200, delayed, nil) })) {
		t.Error("a change that continues altered the losses")
	}
	if again := lost(func(w *way) { w.Change(200, params, NewChance(7, "test", "up")) }); !slices.Equal(again[200:], plain[:200]) {
		t.Error("a change that does not continue must begin the losses again")
	}
}
