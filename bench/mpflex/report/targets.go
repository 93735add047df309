package report

import (
	"math"

	"mplab/bench/mpflex/links"
	"mplab/bench/mpflex/method"
	"mplab/bench/mpflex/workload"
)

// target holds the maximum ratios of MPFlex's time in a row: to kernel MPTCP, to the physical limit, and to yamux over
// one persistent MPTCP connection. NaN: no target.
type target struct{ mptcp, limit, yamux float64 }

// Sizes in bytes at which the targets for one file change.
const (
	smallFile  = 100_000   // below, the overhead of a round trip weighs more
	middleFile = 500_000   // up to here, slow start dominates kernel MPTCP's time
	largeFile  = 2_000_000 // from here on, the link rates dominate

	lossyFrom = 50_000
	bulkFrom  = 5_000_000 // for the share of headers
)

var nothing = math.NaN()

// targetOf returns the target of a row, or false.
func targetOf(w workload.Workload, label string) (target, bool) {
	switch {
	case w.Profile.Name == "loss1" && w.Kind == workload.File && w.Size >= lossyFrom && w.Size <= largeFile:
		return target{0.6, 1.20, 1.0}, true
	case w.Profile.Name != links.Paper:
		return target{}, false
	case w.Kind == workload.File && w.Size >= largeFile:
		return target{0.95, 1.05, 1.0}, true
	case w.Kind == workload.File:
		t := target{0.62, 1.15, 1.0}
		if w.Size > middleFile {
			t.mptcp = 0.72
		}
		if w.Size < smallFile {
			t.limit = 1.25
		}
		return t, true
	case w.Kind == workload.Bundle || w.Kind == workload.Sequence:
		return target{0.70, 1.20, 0.95}, true
	case label == workload.LabelShort:
		return target{0.45, nothing, 0.3}, true
	case label == workload.LabelDies:
		return target{0.80, 1.05, 0.65}, true
	}
	return target{}, false
}

// Targets that are not ratios of times.
const (
	mostHeaders = 0.01 // for bulk: link bytes beyond those of TCP
	leastRate   = 1.0  // relative to yamux over TCP, both with or both without TLS, if the CPU is the limit
)

// verdict is a row of the table of targets.
type verdict struct {
	row    row
	target target
	got    target  // the measured ratios
	floor  target  // the ratios of the physical limit, which is the minimum possible
	same   float64 // ratio to yamux with the same congestion control, for information
	judged bool    // MPFlex has samples
	met    bool
}

// judge compares MPFlex with the targets of all rows. Ratios that do not exist are ignored, but a row in which MPFlex
// failed, even once, is not met.
func (t *table) judge(congestion string) []verdict {
	var all []verdict
	for _, r := range t.rows {
		asked, some := targetOf(t.workloads[r.workload], r.label)
		if !some || r.congestion != congestion {
			continue
		}
		own := t.times(r, method.MPFlex)
		kernel, yamux, limit := t.times(r, method.MPTCP), t.bestYamux(r), t.limit(r)
		v := verdict{
			row: r, target: asked, judged: own.N > 0,
			got: target{
				ratio(own, kernel), toLimit(own, limit), ratio(own, yamux),
			},
			floor: target{1 / toLimit(kernel, limit), 1, 1 / toLimit(yamux, limit)},
			same:  ratio(own, t.times(r, method.YamuxMPTCP)),
		}
		v.met = own.There() && own.Failed == 0 && within(v.got.mptcp, asked.mptcp) && within(v.got.limit, asked.limit) && within(v.got.yamux, asked.yamux)
		all = append(all, v)
	}
	return all
}

func within(got, most float64) bool { return math.IsNaN(got) || math.IsNaN(most) || got <= most }
