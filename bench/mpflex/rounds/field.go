package rounds

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"mplab/bench/mpflex/method"
	"mplab/bench/mpflex/record"
	"mplab/bench/mpflex/rig"
	"mplab/bench/mpflex/workload"
)

const (
	// pathPatience is how long a persistent method may take to establish all paths before a measurement.
	pathPatience = 3 * time.Second
	pathPause    = 50 * time.Millisecond
)

// field holds the methods that compete on one rig.
type field struct {
	*runner
	group
	rig         *rig.Rig
	contestants []*method.Contestant
}

// add starts a method and adds it to the field. A method that is absent or does not start is recorded and skipped.
func (f *field) add(ctx context.Context, c *method.Contestant) error {
	if err := c.Start(ctx); err != nil {
		absent := errors.Is(err, method.ErrAbsent)
		f.say("%s is left out: %v", c.Entry, err)
		f.skip(c.Entry)
		return f.keep(record.Absent{
			Event: record.EventAbsent, Method: c.Name, Congestion: c.Congestion, Profile: f.profile.Name,
			Reason: err.Error(), Failed: !absent,
		})
	}
	f.progressed(startTime)
	f.contestants = append(f.contestants, c)
	if !c.Persistent {
		return nil
	}
	f.progressed(warmTime)
	if err := f.warm(ctx, c); err != nil {
		f.say("%s: warming up: %v", c.Entry, err)
	}
	return ctx.Err()
}

// skip subtracts the expected duration of a skipped method.
func (f *field) skip(e method.Entry) {
	for round := 1; round <= f.Runs; round++ {
		for _, w := range f.workloads {
			if runs(e, w, round) {
				f.left = max(0, f.left-w.Expect()-f.Gap)
			}
		}
	}
}

// round measures a workload once with each method, in random order.
func (f *field) round(ctx context.Context, round int, w workload.Workload) error {
	for _, i := range f.random.Perm(len(f.contestants)) {
		c := f.contestants[i]
		if !runs(c.Entry, w, round) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Now().After(f.deadline) {
			return ErrTooLong
		}
		measurements, err := f.measure(ctx, c, round, w)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", w, c.Entry, err)
		}
		f.progressed(w.Expect() + f.Gap)
		for _, m := range measurements {
			if ctx.Err() != nil && m.Error != "" {
				continue // it failed because the run was ended
			}
			if err := f.keep(m); err != nil {
				return err
			}
		}
		f.tell(round, w, c, measurements)
	}
	return nil
}

func (f *field) tell(round int, w workload.Workload, c *method.Contestant, measurements []record.Measurement) {
	first := measurements[0]
	text := fmt.Sprintf("%.0f ms", first.Ms)
	if first.Error != "" {
		text = "failed: " + first.Error
	}
	for _, fault := range first.Faults {
		text += " (" + fault + ")"
	}
	f.say("round %d of %d, %s, %s: %s; about %v left", round, f.Runs, w, c.Entry, text, f.remaining())
}

// stop ends all methods.
func (f *field) stop() error {
	var errs []error
	for _, c := range f.contestants {
		if err := c.Stop(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.Entry, err))
		}
	}
	return errors.Join(errs...)
}

// ready ensures that a persistent method has all its paths, and restarts it if necessary. It returns the paths, and the
// remaining fault, if any.
func (f *field) ready(ctx context.Context, c *method.Contestant) (paths []netip.Addr, fault string, err error) {
	if !c.Persistent {
		return nil, "", nil
	}
	paths, fault = f.await(ctx, c)
	if fault == "" || ctx.Err() != nil {
		return paths, fault, nil
	}
	restart := record.Restart{Event: record.EventRestart, Method: c.Name, Congestion: c.Congestion, Reason: fault}
	if err := f.restart(ctx, c); err != nil {
		restart.Error = err.Error()
	}
	f.say("%s is set up anew: %s", c.Entry, fault)
	paths, fault = f.await(ctx, c)
	return paths, fault, f.keep(restart)
}

// await waits until all paths exist.
func (f *field) await(ctx context.Context, c *method.Contestant) (paths []netip.Addr, fault string) {
	for deadline := time.Now().Add(pathPatience); ; {
		proof, err := c.Proof(nil)
		paths = proof.Paths()
		switch {
		case err != nil:
			fault = err.Error()
		case proof.Program != "":
			return paths, proof.Program
		case len(paths) == c.Paths():
			return paths, ""
		default:
			fault = fmt.Sprintf("%d of %d paths", len(paths), c.Paths())
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return paths, fault
		}
		time.Sleep(pathPause)
	}
}

// restart restarts a method and warms it up.
func (f *field) restart(ctx context.Context, c *method.Contestant) error {
	stopped := c.Stop() // it may have ended by itself, which can be the reason
	if err := c.Start(ctx); err != nil {
		return errors.Join(stopped, err)
	}
	return f.warm(ctx, c)
}

// warm runs the warm-up transfers of a persistent method.
func (f *field) warm(ctx context.Context, c *method.Contestant) error {
	if err := f.settings(c, false); err != nil {
		return err
	}
	for _, w := range warmUps(f.profile) {
		for _, s := range w.Run(ctx, &environment{field: f, contestant: c}) {
			if s.Error != "" {
				return errors.Join(errors.New(s.Error), f.settings(c, true))
			}
		}
	}
	return f.settings(c, true)
}

// settings sets the sysctls of a method at phone and proxy, or restores them.
func (f *field) settings(c *method.Contestant, back bool) error {
	for _, s := range c.Sysctls {
		value := s.Value
		if back {
			value = s.Default
		}
		if err := errors.Join(f.rig.Phone.SetSysctl(s.Key, value), f.rig.Proxy.SetSysctl(s.Key, value)); err != nil {
			return err
		}
	}
	return nil
}
