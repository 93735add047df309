package rounds

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"mplab/bench/mpflex/method"
	"mplab/bench/mpflex/record"
	"mplab/bench/mpflex/rig"
	"mplab/bench/mpflex/workload"
)

const (
	// settleShare is the part of the gap to wait before reading the traffic of a measurement: data that is still
	// queued, such as a second copy, belongs to it.
	settleShare = 0.5
	// onePathBytes: a larger transfer should use both links. If one link carries less than oneLinkShare of its bytes,
	// that is noted.
	onePathBytes = 1_000_000
	oneLinkShare = 0.02
)

// environment is the interface between a workload and a contestant.
type environment struct {
	*field
	contestant *method.Contestant

	mu       sync.Mutex
	observed *method.Proof // guarded by mu
	failed   error         // error of observing; guarded by mu
}

func (e *environment) Dial(ctx context.Context) (net.Conn, error) { return e.contestant.Dial(ctx) }
func (e *environment) KillWiFi() error                            { return e.rig.KillWiFi() }
func (e *environment) ReviveWiFi() error                          { return e.rig.ReviveWiFi() }

// Seed implements workload.Env.
func (e *environment) Seed() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.random.Uint64()
}

// Observe implements workload.Env.
func (e *environment) Observe(conn net.Conn) {
	proof, err := e.contestant.Proof(conn)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.observed, e.failed = &proof, err
}

// measure runs a workload once with one method. An error means that the rig does not work, and ends the run.
func (f *field) measure(ctx context.Context, c *method.Contestant, round int, w workload.Workload) ([]record.Measurement, error) {
	paths, fault, err := f.ready(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := f.settings(c, false); err != nil {
		return nil, err
	}
	trafficBefore, err := f.rig.Traffic()
	if err != nil {
		return nil, err
	}
	env := &environment{field: f, contestant: c}
	hostBefore, begun := rig.ReadHost(), time.Now()
	samples := w.Run(ctx, env)
	load := rig.ReadHost().Since(hostBefore)
	settle := time.Duration(settleShare * float64(f.Gap))
	time.Sleep(settle)
	trafficAfter, err := f.rig.Traffic()
	if err := errors.Join(err, f.settings(c, true)); err != nil {
		return nil, err
	}
	time.Sleep(f.Gap - settle)

	common := record.Measurement{
		Event: record.EventMeasurement, Time: unixTime(begun), Round: round, Profile: f.profile.Name, Workload: w.String(),
		Method: c.Name, Congestion: c.Congestion, Links: map[string]rig.Traffic{}, PathsBefore: paths, Observed: env.observed, Host: load,
	}
	for name, after := range trafficAfter {
		common.Links[name] = after.Sub(trafficBefore[name])
	}
	common.Faults = faults(c, env, fault)
	common.Notes = notes(c, w, samples, common.Links)
	var measurements []record.Measurement
	for _, s := range samples {
		m := common
		m.Sample = s
		measurements = append(measurements, m)
	}
	if w.Kind == workload.Dying && c.Persistent { // its recovery was measured; later measurements must not depend on it
		if err := f.restart(ctx, c); err != nil {
			f.say("%s: set up anew after %s: %v", c.Entry, w, err)
		}
	}
	return measurements, nil
}

// faults returns the reasons to exclude a measurement, because the method was not as specified.
func faults(c *method.Contestant, env *environment, before string) []string {
	env.mu.Lock()
	defer env.mu.Unlock()
	var found []string
	if before != "" {
		found = append(found, before)
	}
	if env.failed != nil {
		found = append(found, env.failed.Error())
	}
	seen := env.observed
	if seen == nil {
		return found // the sample or its bundle failed
	}
	if !slices.Equal(seen.Congestion, []string{c.Congestion}) {
		found = append(found, fmt.Sprintf("congestion control %v instead of %s", seen.Congestion, c.Congestion))
	}
	if seen.Multipath != nil && !*seen.Multipath {
		found = append(found, "the connection fell back to plain TCP")
	}
	if seen.Program != "" {
		found = append(found, seen.Program)
	}
	return found
}

// notes reports a method that may use two links but used only one.
func notes(c *method.Contestant, w workload.Workload, samples []workload.Sample, traffic map[string]rig.Traffic) []string {
	bytes, whole := 0, int64(0)
	for _, s := range samples {
		bytes += s.Bytes
	}
	of := func(t rig.Traffic) int64 {
		if w.Up {
			return t.UpBytes
		}
		return t.DownBytes
	}
	for _, t := range traffic {
		whole += of(t)
	}
	if c.SinglePath || bytes < onePathBytes || w.Kind == workload.Dying {
		return nil
	}
	var found []string
	for _, name := range []string{rig.WiFi, rig.LTE} {
		if share := float64(of(traffic[name])) / float64(max(whole, 1)); share < oneLinkShare {
			found = append(found, fmt.Sprintf("%s carried less than %.0f %% of the bytes", name, 100*oneLinkShare))
		}
	}
	return found
}
