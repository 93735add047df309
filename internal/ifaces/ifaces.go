package ifaces

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path"
	"slices"
	"sync"
	"time"
)

const (
	// settleTime is how long to wait for a change to complete: an interface
	// that comes up gets its addresses and routes one after the other.
	settleTime = 5 * time.Millisecond
	// restTime is the minimum interval between two reads; restFactor is the
	// minimum interval as a multiple of the duration of a read.
	restTime   = 50 * time.Millisecond
	restFactor = 20
	// pollTime is the interval of reads without notifications, and after a
	// failed read.
	pollTime = time.Second
)

// Interface is a usable interface: it is up, has its carrier, and has an
// address that other hosts can answer to.
type Interface struct {
	Name  string
	Index int
	// Addrs are its addresses, sorted, without link-local ones and without
	// those whose uniqueness is not yet verified (RFC 4862 §5.4). Do not change
	// them.
	Addrs []netip.Addr
	// DefaultIPv4 and DefaultIPv6 report whether a routing table has a default
	// route over the interface. If the system hides its routes, they report
	// whether it has an address of the family.
	DefaultIPv4, DefaultIPv6 bool
}

func (i Interface) equal(other Interface) bool {
	return i.Name == other.Name && i.Index == other.Index && slices.Equal(i.Addrs, other.Addrs) &&
		i.DefaultIPv4 == other.DefaultIPv4 && i.DefaultIPv6 == other.DefaultIPv6
}

// Set is the set of usable interfaces. It is safe for concurrent use.
type Set struct {
	patterns []string
	reader   *reader
	changed  chan struct{}
	noticed  chan struct{}
	done     chan struct{}

	mu       sync.Mutex // guards the following fields
	current  []Interface
	polling  error
	readings int
}

// Watch watches the interfaces whose names match one of the patterns (as in
// path.Match); without patterns, all except loopback. The loopback interface is
// included only if a pattern is its exact name. Watch uses the network
// namespace of the caller and ends with ctx.
func Watch(ctx context.Context, patterns []string) (*Set, error) {
	for _, pattern := range patterns {
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, fmt.Errorf("interface name %q: %w", pattern, err)
		}
	}
	reader, err := newReader()
	if err != nil {
		return nil, err
	}
	s := &Set{patterns: patterns, reader: reader, changed: make(chan struct{}, 1), noticed: make(chan struct{}, 1), done: make(chan struct{})}
	notices, err := subscribe()
	if err != nil {
		s.polling = err
	}
	// Subscribe first, so that no change is missed.
	if err := s.read(); err != nil {
		notices.close()
		reader.close()
		return nil, err
	}
	select {
	case <-s.changed: // the first read is not a change
	default:
	}
	go s.run(ctx, notices)
	return s, nil
}

// Snapshot returns the usable interfaces, in the order of the patterns, and by
// name within a pattern.
func (s *Set) Snapshot() []Interface {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.current)
}

// Changed returns a channel that receives an element after the set has changed;
// several changes can be one element. It is for a single reader, which takes a
// Snapshot and compares it with the last one (Diff).
func (s *Set) Changed() <-chan struct{} { return s.changed }

// Noticed returns a channel that receives an element after each read, even if
// the set has not changed: there was a notification about a link, an address or
// a route. It is for a single reader that needs more than the set.
func (s *Set) Noticed() <-chan struct{} { return s.noticed }

// Polling returns nil while changes are notified immediately. Otherwise it
// returns the reason why they are not; they are then found within 1 s.
func (s *Set) Polling() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.polling
}

// Done returns a channel that is closed when the context of Watch has ended and
// all resources are released.
func (s *Set) Done() <-chan struct{} { return s.done }

// run reads after each notification until ctx ends.
func (s *Set) run(ctx context.Context, notices *notices) {
	defer close(s.done)
	defer s.reader.close()
	defer func() { notices.close() }()
	stop := context.AfterFunc(ctx, notices.close)
	defer stop()
	failed := false
	for {
		if err := s.await(ctx, notices, failed); err != nil {
			return
		}
		if !sleep(ctx, settleTime) {
			return
		}
		notices.drain()
		start := time.Now()
		failed = s.read() != nil
		select {
		case s.noticed <- struct{}{}:
		default: // an element is already pending
		}
		if !sleep(ctx, max(restTime, restFactor*time.Since(start))) {
			return
		}
	}
}

// await waits until the next read is due. An error ends the loop.
func (s *Set) await(ctx context.Context, notices *notices, failed bool) error {
	if s.Polling() != nil {
		if !sleep(ctx, pollTime) {
			return ctx.Err()
		}
		return nil
	}
	var until time.Time // no limit
	if failed {
		until = time.Now().Add(pollTime)
	}
	err := notices.wait(until)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
		s.mu.Lock()
		s.polling = err
		s.mu.Unlock()
	}
	return nil
}

// read reads the interfaces and signals a change.
func (s *Set) read() error {
	next, err := s.reader.read(s.wanted)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readings++
	if err != nil {
		return err
	}
	next = s.order(next)
	if slices.EqualFunc(s.current, next, Interface.equal) {
		return nil
	}
	s.current = next
	select {
	case s.changed <- struct{}{}:
	default: // an element is already pending
	}
	return nil
}

// place returns the index of the first pattern that matches a name.
func (s *Set) place(name string) int {
	return slices.IndexFunc(s.patterns, func(pattern string) bool {
		matches, _ := path.Match(pattern, name)
		return matches
	})
}

func (s *Set) wanted(name string, loopback bool) bool {
	if loopback {
		return slices.Contains(s.patterns, name)
	}
	return len(s.patterns) == 0 || s.place(name) >= 0
}

func (s *Set) order(interfaces []Interface) []Interface {
	slices.SortFunc(interfaces, func(a, b Interface) int {
		return cmp.Or(cmp.Compare(s.place(a.Name), s.place(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return interfaces
}

// sleep waits, and reports whether ctx is still active.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
