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
	// settleTime is what a change is given to become complete: an interface
	// that comes up gets its addresses and routes one after the other.
	settleTime = 5 * time.Millisecond
	// restTime passes at least from one reading to the next, and
	// restFactor times what a reading takes.
	restTime   = 50 * time.Millisecond
	restFactor = 20
	// pollTime is how often it reads where there are no notices, and after a
	// reading that failed.
	pollTime = time.Second
)

// Interface is an interface that can be used: it is up, has its carrier, and an
// address that others can answer to.
type Interface struct {
	Name  string
	Index int
	// Addrs are its addresses, sorted; no link-local ones, and none that is not
	// yet proved to be its own (RFC 4862 §5.4). Not to be changed.
	Addrs []netip.Addr
	// DefaultIPv4 and DefaultIPv6 tell whether some routing table has a default
	// route over it. Where the system shows no routes they tell whether it has
	// an address of the family.
	DefaultIPv4, DefaultIPv6 bool
}

func (i Interface) equal(other Interface) bool {
	return i.Name == other.Name && i.Index == other.Index && slices.Equal(i.Addrs, other.Addrs) &&
		i.DefaultIPv4 == other.DefaultIPv4 && i.DefaultIPv6 == other.DefaultIPv6
}

// Set is the interfaces that can be used. Its methods may be called from
// everywhere.
type Set struct {
	patterns []string
	reader   *reader
	changed  chan struct{}
	noticed  chan struct{}
	done     chan struct{}

	mu       sync.Mutex // guards what follows
	current  []Interface
	polling  error
	readings int
}

// Watch watches the interfaces whose names match one of the patterns (as of
// path.Match), all but the loopback when there is no pattern. The loopback
// interface is among them only by its whole name. The network namespace is that
// of the caller. Watch ends with ctx.
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
	// Subscribed first, so that no change falls between.
	if err := s.read(); err != nil {
		notices.close()
		reader.close()
		return nil, err
	}
	select {
	case <-s.changed: // the first reading is no change
	default:
	}
	go s.run(ctx, notices)
	return s, nil
}

// Snapshot returns the interfaces that can be used now: in the order of the
// patterns, those of one pattern by their names.
func (s *Set) Snapshot() []Interface {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.current)
}

// Changed is a channel that has an element after the set changed; several
// changes may be one element. It is for one reader, who takes a Snapshot and
// compares it with the last (Diff).
func (s *Set) Changed() <-chan struct{} { return s.changed }

// Noticed is a channel that has an element after each reading, whether the set
// changed or not: some notice came, of a link, an address or a route. It is for
// one reader, who looks at more than the set tells.
func (s *Set) Noticed() <-chan struct{} { return s.noticed }

// Polling is nil while changes are noticed at once. Otherwise it is why they are
// not: they are found within 1 s.
func (s *Set) Polling() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.polling
}

// Done is closed when the context of Watch has ended and all is released.
func (s *Set) Done() <-chan struct{} { return s.done }

// run reads at each notice until ctx ends.
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
		default: // one is waiting to be taken
		}
		if !sleep(ctx, max(restTime, restFactor*time.Since(start))) {
			return
		}
	}
}

// await waits until it is time to read again; the error is the end.
func (s *Set) await(ctx context.Context, notices *notices, failed bool) error {
	if s.Polling() != nil {
		if !sleep(ctx, pollTime) {
			return ctx.Err()
		}
		return nil
	}
	var until time.Time // for ever
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

// read reads what is there, and tells of a change.
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
	default: // one is waiting to be taken
	}
	return nil
}

// place is the number of the first pattern that a name matches.
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

// sleep waits and tells whether ctx goes on.
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
