package report

import (
	"math"

	"mplab/bench/mpflex/links"
	"mplab/bench/mpflex/method"
	"mplab/bench/mpflex/workload"
)

// target is what MPFlex has to reach in a row: its time is at most so many times that of kernel MPTCP, of the physical
// limit, of yamux over one persistent MPTCP connection. NaN: nothing is asked.
type target struct{ mptcp, limit, yamux float64 }

// Sizes at which the targets for one file change, bytes.
const (
	smallFile  = 100_000   // below, overheads of a round trip weigh more
	middleFile = 500_000   // up to here, slow start is most of kernel MPTCP's time
	largeFile  = 2_000_000 // from here, the links' rates are

	lossyFrom = 50_000
	bulkFrom  = 5_000_000 // for the share of headers
)

var nothing = math.NaN()

// targetOf gives the target of a row; false when it has none.
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

// Targets that are no ratios of times.
const (
	mostHeaders = 0.01 // of bulk: bytes on the links beyond those of TCP
	leastRate   = 1.0  // of yamux over TCP, both with TLS or both without, where the processor is the limit
)

// verdict is one row of the table of targets.
type verdict struct {
	row    row
	target target
	got    target  // the ratios reached
	floor  target  // those of the physical limit: what is below cannot be reached
	same   float64 // against yamux with the same congestion control, for information
	judged bool    // there is a median of MPFlex
	met    bool
}

// judge compares MPFlex with the targets of all rows. Ratios that are not there are not judged, but a row that MPFlex
// itself failed in, be it once, is not met.
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
