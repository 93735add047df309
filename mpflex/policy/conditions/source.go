package conditions

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"mplab/mpflex/policy"
)

// Source provides some of the conditions.
type Source interface {
	// Fill sets the conditions of the source and keeps the others. A reading that fails
	// stays unknown. The error is its reason.
	Fill(*policy.Conditions) error
}

// Clock provides the time.
type Clock struct{}

// Fill sets the time, in the phone's time zone.
func (Clock) Fill(c *policy.Conditions) error {
	c.Time = time.Now()
	return nil
}

// All combines several sources. They run in order: a later one sees the values of
// earlier ones.
type All []Source

// Fill returns the joined errors of all sources.
func (a All) Fill(c *policy.Conditions) error {
	var errs []error
	for _, source := range a {
		errs = append(errs, source.Fill(c))
	}
	return errors.Join(errs...)
}

// Throughput is the measured throughput of WiFi. The zero Throughput is unknown. It is
// safe for concurrent use.
type Throughput struct{ current atomic.Pointer[float64] }

// Set sets the measured throughput in bit/s.
func (t *Throughput) Set(bitsPerSecond float64) { t.current.Store(&bitsPerSecond) }

// Forget makes the throughput unknown, as without WiFi.
func (t *Throughput) Forget() { t.current.Store(nil) }

// Fill sets the throughput of WiFi.
func (t *Throughput) Fill(c *policy.Conditions) error {
	if value := t.current.Load(); value != nil {
		c.WiFiThroughput = policy.Known(*value)
	}
	return nil
}

// Cached reads a source at most once per interval and repeats its values until then. It
// is safe for concurrent use with any source.
type Cached struct {
	source Source
	every  time.Duration
	report func(error)

	mu    sync.Mutex // held while the source is read; guards the fields below
	asked time.Time
	last  policy.Conditions
	said  string // the last reported error
}

// NewCached returns a source that reads another one at most once per interval every. It
// reports an error once, and again when it changes. report may be nil.
func NewCached(source Source, every time.Duration, report func(error)) *Cached {
	if report == nil {
		report = func(error) {}
	}
	return &Cached{source: source, every: every, report: report}
}

// Fill sets the last values of the source. It does not change the time. The error is
// always nil.
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
