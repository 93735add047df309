package rounds

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"mplab/bench/mpflex/links"
	"mplab/bench/mpflex/method"
	"mplab/bench/mpflex/workload"
)

const (
	// DefaultRuns is how often each method runs each workload.
	DefaultRuns = 10
	// QuickRuns is the same of a quick benchmark.
	QuickRuns = 3
	// ReferenceRuns is how often at most those methods do that are beside the table, and whose times hardly vary.
	ReferenceRuns = 3
	// DefaultGap is the pause after each measurement.
	DefaultGap = 700 * time.Millisecond
)

// What is assumed of durations beside the measurements.
const (
	setupTime   = 12 * time.Second       // of a rig, its verification included
	startTime   = 500 * time.Millisecond // of a method
	warmTime    = 2 * time.Second        // of a persistent method
	slackFactor = 2                      // a run may take so many times what is expected,
	slackTime   = 5 * time.Minute        // and so much more
)

// ErrTooLong: the run took much longer than expected and was ended.
var ErrTooLong = errors.New("ended early: it took too long")

// Options say what a run measures.
type Options struct {
	Runs      int
	Workloads []workload.Workload
	Methods   []method.Entry
	Seed      uint64
	Gap       time.Duration
}

// Check refuses options that make no run.
func (o Options) Check() error {
	switch {
	case o.Runs < 1 || o.Runs > 1000:
		return fmt.Errorf("runs: %d is not within 1 and 1000", o.Runs)
	case len(o.Workloads) == 0:
		return errors.New("workloads: there are none")
	case len(o.Methods) == 0:
		return errors.New("methods: there are none")
	case o.Gap < 0:
		return fmt.Errorf("gap: %v is negative", o.Gap)
	}
	return nil
}

// group are the workloads of one profile of links.
type group struct {
	profile   links.Profile
	workloads []workload.Workload
}

// groups puts workloads together by their links, in the order in which these first appear.
func (o Options) groups() []group {
	var all []group
	for _, w := range o.Workloads {
		at := slices.IndexFunc(all, func(g group) bool { return g.profile.Name == w.Profile.Name })
		if at < 0 {
			at = len(all)
			all = append(all, group{profile: w.Profile})
		}
		all[at].workloads = append(all[at].workloads, w)
	}
	return all
}

// runs says whether a method takes part in a workload in a round, the first of which is 1.
func runs(e method.Entry, w workload.Workload, round int) bool {
	switch {
	case w.NeedsTwoPaths() && e.SinglePath:
		return false
	case w.Kind == workload.Rate:
		return true
	}
	return !e.Reference || round <= ReferenceRuns
}

// Times are how long a run takes.
type Times struct {
	Expected time.Duration
	// Bound is what it takes at most: when it is not done shortly before, it ends early.
	Bound time.Duration
}

// Times estimates the duration of a run, and bounds it.
func (o Options) Times() Times {
	var t Times
	longest := time.Duration(0) // measurement, which is not cut short
	for _, g := range o.groups() {
		t.Expected += setupTime
		for _, e := range o.Methods {
			t.Expected += startTime
			if e.Persistent {
				t.Expected += warmTime
			}
			for round := 1; round <= o.Runs; round++ {
				for _, w := range g.workloads {
					if runs(e, w, round) {
						t.Expected += w.Expect() + o.Gap
						longest = max(longest, w.Bound())
					}
				}
			}
		}
	}
	t.Bound = patience(t.Expected) + longest
	return t
}

// patience is after what time no further measurement begins.
func patience(expected time.Duration) time.Duration {
	return slackFactor*expected + slackTime
}
