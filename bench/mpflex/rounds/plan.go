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
	// DefaultRuns is the number of times that each method runs each workload.
	DefaultRuns = 10
	// QuickRuns is the same number for a quick benchmark.
	QuickRuns = 3
	// ReferenceRuns is the maximum number for reference methods, whose times hardly vary.
	ReferenceRuns = 3
	// DefaultGap is the pause after each measurement.
	DefaultGap = 700 * time.Millisecond
)

// Assumed durations outside the measurements.
const (
	setupTime   = 12 * time.Second       // of a rig, including its verification
	startTime   = 500 * time.Millisecond // of a method
	warmTime    = 2 * time.Second        // of a persistent method
	slackFactor = 2                      // maximum duration: the expected duration times this,
	slackTime   = 5 * time.Minute        // plus this
)

// ErrTooLong means that the run took much longer than expected and was ended.
var ErrTooLong = errors.New("ended early: it took too long")

// Options configure a run.
type Options struct {
	Runs      int
	Workloads []workload.Workload
	Methods   []method.Entry
	Seed      uint64
	Gap       time.Duration
}

// Check returns an error for invalid options.
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

// group holds the workloads of one link profile.
type group struct {
	profile   links.Profile
	workloads []workload.Workload
}

// groups groups the workloads by link profile, in the order of first appearance.
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

// runs reports whether a method takes part in a workload in a round; rounds start at 1.
func runs(e method.Entry, w workload.Workload, round int) bool {
	switch {
	case w.NeedsTwoPaths() && e.SinglePath:
		return false
	case w.Kind == workload.Rate:
		return true
	}
	return !e.Reference || round <= ReferenceRuns
}

// Times holds the estimated duration of a run.
type Times struct {
	Expected time.Duration
	// Bound is the maximum duration: a run that takes longer ends early.
	Bound time.Duration
}

// Times estimates the duration of a run.
func (o Options) Times() Times {
	var t Times
	longest := time.Duration(0) // longest measurement, which is not interrupted
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

// patience returns the time after which no further measurement starts.
func patience(expected time.Duration) time.Duration {
	return slackFactor*expected + slackTime
}
