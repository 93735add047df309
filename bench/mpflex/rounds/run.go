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

// runner is one run.
type runner struct {
	Options
	keep     func(any) error // takes a record
	progress io.Writer
	random   *rand.Rand
	begun    time.Time
	deadline time.Time     // after which no measurement begins
	left     time.Duration // expected of what is not done yet
	done     time.Duration // expected of what is done
	troubles []error
}

// Run measures. It gives every record to keep as soon as it is there, and tells progress what it does. When ctx ends it
// stops after the measurement that is under way, with ctx's error.
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

// trouble is what went wrong at the end of a rig or a method. The run goes on with the next, and fails at its end.
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

// rootless says whether this process is root only in a user namespace of its own.
func rootless() bool {
	data, err := os.ReadFile("/proc/self/uid_map")
	fields := strings.Fields(string(data))
	return err == nil && len(fields) > 2 && fields[2] != "4294967295"
}

// group measures the workloads of one profile of links, on a rig of its own.
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

// progressed counts work that was expected to take so long as done.
func (r *runner) progressed(d time.Duration) {
	r.done += d
	r.left = max(0, r.left-d)
}

// remaining is how long the rest will take, judged by how long it took until now.
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

// warmUps are what a persistent method carries before it is measured: its premise is that it was in use before.
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
