package rounds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"mplab/bench/mpflex/links"
	"mplab/bench/mpflex/method"
	"mplab/bench/mpflex/origin"
	"mplab/bench/mpflex/record"
	"mplab/bench/mpflex/rig"
	"mplab/bench/mpflex/role"
	"mplab/bench/mpflex/workload"
)

// runner executes a run.
type runner struct {
	Options
	keep     func(any) error // stores a record
	progress io.Writer
	random   *rand.Rand
	begun    time.Time
	deadline time.Time     // no measurement starts after it
	left     time.Duration // expected duration of the remaining work
	done     time.Duration // expected duration of the finished work
	troubles []error
}

// Run runs the benchmark. It passes every record to keep immediately, and logs to progress. When ctx ends, it stops
// after the current measurement with the error of ctx.
func Run(ctx context.Context, o Options, keep func(any) error, progress io.Writer) error {
	if err := o.Check(); err != nil {
		return err
	}
	r := &runner{Options: o, keep: keep, progress: progress, random: rand.New(rand.NewPCG(o.Seed, 0)), begun: time.Now()}
	r.left = o.Times().Expected
	r.deadline = r.begun.Add(patience(r.left))
	if err := keep(r.head()); err != nil {
		return err
	}
	for _, g := range o.groups() {
		if err := r.group(ctx, g); err != nil {
			return errors.Join(append(r.troubles, err)...)
		}
	}
	return errors.Join(r.troubles...)
}

// trouble records an error at the end of a rig or a method. The run continues and fails at its end.
func (r *runner) trouble(err error) {
	if err != nil {
		r.say("%v", err)
		r.troubles = append(r.troubles, err)
	}
}

func (r *runner) head() record.Run {
	head := record.Run{
		Event: record.EventRun, Started: unixTime(r.begun), Seed: r.Seed, Runs: r.Runs,
		CPUs: runtime.NumCPU(), Go: runtime.Version(), Rootless: rootless(),
	}
	for _, w := range r.Workloads {
		head.Workloads = append(head.Workloads, w.String())
	}
	for _, e := range r.Methods {
		head.Methods = append(head.Methods, e.String())
	}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		head.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	return head
}

// rootless reports whether this process is root only in a separate user namespace.
func rootless() bool {
	data, err := os.ReadFile("/proc/self/uid_map")
	fields := strings.Fields(string(data))
	return err == nil && len(fields) > 2 && fields[2] != "4294967295"
}

// group measures the workloads of one link profile, on a separate rig.
func (r *runner) group(ctx context.Context, g group) error {
	r.say("links %s: %s", g.profile.Name, g.profile.About)
	network, err := rig.New(g.profile.Shaped, r.Seed)
	if err != nil {
		return err
	}
	defer func() { r.trouble(network.Close()) }()
	if err := network.Apply(g.profile); err != nil {
		return err
	}
	checked, err := network.Verify(ctx)
	if err != nil {
		return err
	}
	if err := r.keep(record.Links{Event: record.EventLinks, Profile: g.profile.Name, Checked: checked, Nice: rig.Nice()}); err != nil {
		return err
	}
	var contestants []*method.Contestant
	var listeners []origin.Listener
	for i, e := range r.Methods {
		c := method.New(e, network, i)
		contestants, listeners = append(contestants, c), append(listeners, c.Listener())
	}
	server, err := network.Origin.Start(role.Origin, role.Encode(listeners))
	if err != nil {
		return err
	}
	defer func() { r.trouble(server.Stop()) }()
	r.progressed(setupTime)

	field := &field{runner: r, rig: network, group: g}
	defer func() { r.trouble(field.stop()) }()
	for _, c := range contestants {
		if err := field.add(ctx, c); err != nil {
			return err
		}
	}
	for round := 1; round <= r.Runs; round++ {
		for _, w := range g.workloads {
			if err := field.round(ctx, round, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// progressed counts work with the expected duration d as finished.
func (r *runner) progressed(d time.Duration) {
	r.done += d
	r.left = max(0, r.left-d)
}

// remaining estimates the remaining duration from the speed so far.
func (r *runner) remaining() time.Duration {
	if r.done == 0 {
		return r.left
	}
	return time.Duration(float64(r.left) * float64(time.Since(r.begun)) / float64(r.done)).Round(time.Second)
}

func (r *runner) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.progress, format+"\n", args...)
}

func unixTime(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// warmUps returns the transfers that a persistent method carries before it is measured, because such a method is
// assumed to have been in use.
func warmUps(p links.Profile) []workload.Workload {
	if !p.Shaped {
		return []workload.Workload{
			{Kind: workload.Rate, Size: 1_000_000, Profile: p},
			{Kind: workload.Rate, Size: 1_000_000, Profile: p, Up: true},
		}
	}
	return []workload.Workload{
		{Kind: workload.Bundle, Count: 4, Ways: 2, Size: 100_000, Profile: p},
		{Kind: workload.File, Size: 100_000, Profile: p, Up: true},
		{Kind: workload.File, Size: 2_000_000, Profile: p},
		{Kind: workload.File, Size: 500_000, Profile: p, Up: true},
	}
}
