package conditions

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"mplab/mpflex/policy"
)

// Source knows some of the conditions.
type Source interface {
	// Fill sets what the source knows and leaves the rest as it is. A reading
	// that cannot be had stays unknown; the error says why.
	Fill(*policy.Conditions) error
}

// Clock knows the time.
type Clock struct{}

// Fill sets the time, in the phone's own time zone.
func (Clock) Fill(c *policy.Conditions) error {
	c.Time = time.Now()
	return nil
}

// All asks several sources, one after the other: a later one sees what the
// earlier ones set.
type All []Source

// Fill returns the errors of all sources.
func (a All) Fill(c *policy.Conditions) error {
	var errs []error
	for _, source := range a {
		errs = append(errs, source.Fill(c))
	}
	return errors.Join(errs...)
}

// Throughput is the measured throughput of WiFi, as the session reports it.
// The zero Throughput is unknown. It is safe for concurrent use.
type Throughput struct{ current atomic.Pointer[float64] }

// Set reports a measurement, in bit/s.
func (t *Throughput) Set(bitsPerSecond float64) { t.current.Store(&bitsPerSecond) }

// Forget makes the throughput unknown, as it is when WiFi has gone.
func (t *Throughput) Forget() { t.current.Store(nil) }

// Fill sets the throughput of WiFi.
func (t *Throughput) Fill(c *policy.Conditions) error {
	if value := t.current.Load(); value != nil {
		c.WiFiThroughput = policy.Known(*value)
	}
	return nil
}

// Cached asks a source again only after some time, and in between repeats what
// it said. It is safe for concurrent use, whatever the source is.
type Cached struct {
	source Source
	every  time.Duration
	report func(error)

	mu    sync.Mutex // held while the source is asked; guards what follows
	asked time.Time
	last  policy.Conditions
	said  string // the error that was reported last
}

// NewCached returns a source that asks another one at most so often. An error
// is reported once, and again when it has changed; report may be nil.
func NewCached(source Source, every time.Duration, report func(error)) *Cached {
	if report == nil {
		report = func(error) {}
	}
	return &Cached{source: source, every: every, report: report}
}

// Fill sets what the source knew when it was asked last. The time is not
// cached: it is left as it is. The error is always nil.
func (k *Cached) Fill(c *policy.Conditions) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := time.Now(); k.asked.IsZero() || now.Sub(k.asked) >= k.every {
		k.ask(now)
	}
	for _, reading := range []struct{ to, from *policy.Reading }{
		{&c.Battery, &k.last.Battery}, {&c.PlanLeft, &k.last.PlanLeft},
		{&c.PlanLimit, &k.last.PlanLimit}, {&c.WiFiThroughput, &k.last.WiFiThroughput},
	} {
		if reading.from.Known {
			*reading.to = *reading.from
		}
	}
	return nil
}

func (k *Cached) ask(now time.Time) {
	k.asked, k.last = now, policy.Conditions{Time: now}
	said := ""
	if err := k.source.Fill(&k.last); err != nil {
		if said = err.Error(); said != k.said {
			k.report(err)
		}
	}
	k.said = said
}
