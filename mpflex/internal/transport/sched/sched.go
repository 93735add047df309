package sched

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Path is the state of a path when a message is placed. Sizes are in bytes, rates in
// bytes per second.
type Path struct {
	ID      uint8
	Backup  bool          // use only while no other path can be used
	RTT     time.Duration // smoothed; 0 before the first sample
	MinRTT  time.Duration // recent minimum
	Rate    float64       // highest recent delivery rate; 0: unknown
	Window  int           // congestion window
	Queued  int           // written to TCP and not acknowledged
	Room    int           // bytes that may be written now; 0: none
	Stalled bool          // no progress for too long
}

// Message is a message that waits for a path.
type Message struct {
	Size    int    // bytes
	Left    int    // unsent bytes of the stream behind the message, as far as known
	Sent    uint64 // bytes of the stream that were placed before
	Waiting int    // unsent bytes of all streams without this message; Left is included
}

// Paths is a set of paths, by their index in the list passed to Place.
type Paths uint64

// One returns the set with one path. It is empty if i is below 0.
func One(i int) Paths {
	if i < 0 {
		return 0
	}
	return 1 << i
}

// Has reports whether the set contains the path with index i.
func (p Paths) Has(i int) bool { return p>>i&1 != 0 }

// Scheduler places messages. One goroutine at a time uses it, for the streams of one
// direction of a session.
type Scheduler interface {
	// Place returns the paths for a message; each carries a copy. The caller skips
	// paths without room. If none remains, the message waits. There are at most 64
	// paths.
	Place(m Message, paths []Path) Paths
}

// Pinned is a scheduler whose streams stay on the path that Place names, even if it has
// no room. Copies of late messages stay on it, too.
type Pinned interface {
	Scheduler
	pinned()
}

var registry = map[string]func() Scheduler{}

// register adds a scheduler. Each file with a scheduler calls it.
func register(name string, create func() Scheduler) { registry[name] = create }

// Default is the name of the scheduler that is used if none is configured.
const Default = "earliest"

// New returns a new scheduler; "" means Default. An unknown name is an error.
func New(name string) (Scheduler, error) {
	if name == "" {
		name = Default
	}
	if create, ok := registry[name]; ok {
		return create(), nil
	}
	return nil, fmt.Errorf("no scheduler %q; there are %s", name, strings.Join(Names(), ", "))
}

// Names returns the names of all schedulers, sorted.
func Names() []string {
	names := make([]string, 0, len(registry))
	for name := range registry {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// usable returns a function that reports whether a path may be chosen: a backup only if
// there is no other path, a stalled path only if all paths are stalled.
func usable(paths []Path) func(p *Path) bool {
	regular, alive := false, false
	for i := range paths {
		alive = alive || !paths[i].Stalled
	}
	for i := range paths {
		regular = regular || !paths[i].Backup && (!alive || !paths[i].Stalled)
	}
	return func(p *Path) bool { return !(alive && p.Stalled) && !(regular && p.Backup) }
}

// least returns the index of the usable path with the lowest cost, or −1. With room,
// paths without room are skipped.
func least(paths []Path, room bool, cost func(p *Path) float64) int {
	ok, best, least := usable(paths), -1, 0.0
	for i := range paths {
		p := &paths[i]
		if !ok(p) || room && p.Room <= 0 {
			continue
		}
		if c := cost(p); best < 0 || c < least {
			best, least = i, c
		}
	}
	return best
}

func rtt(p *Path) float64 { return p.RTT.Seconds() }
