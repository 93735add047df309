package sched

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Path is what is known of a path when a message is to be placed. Sizes are in
// bytes, rates in bytes a second.
type Path struct {
	ID      uint8
	Backup  bool          // to be used only when no other path can be
	RTT     time.Duration // smoothed; 0 before the first sample
	MinRTT  time.Duration // the least of late
	Rate    float64       // that it has delivered at best of late; 0: not known
	Window  int           // congestion window
	Queued  int           // written and not acknowledged
	Room    int           // may be written now; 0: not one byte
	Stalled bool          // has made no progress for too long
}

// Message is what is to be placed.
type Message struct {
	Size    int    // bytes
	Left    int    // bytes of the stream that wait behind it, as far as they are known
	Sent    uint64 // bytes of the stream that were placed before
	Waiting int    // bytes of all streams that wait beside it, Left among them
}

// Paths is a set of paths, by their index in the list that was given.
type Paths uint64

// One is the set of one path; it is empty for an index below 0.
func One(i int) Paths {
	if i < 0 {
		return 0
	}
	return 1 << i
}

// Has says whether the path with an index is in the set.
func (p Paths) Has(i int) bool { return p>>i&1 != 0 }

// Scheduler places messages. It is used by one goroutine at a time, for the
// streams of one direction of a session.
type Scheduler interface {
	// Place returns the paths that are to carry a message, a copy each. Those
	// without room are left out by the caller; when none is left the message
	// waits. There are at most 64 paths.
	Place(m Message, paths []Path) Paths
}

// Pinned is a scheduler whose streams stay on the path that Place names, whatever
// room it has: copies of late messages take no other one either.
type Pinned interface {
	Scheduler
	pinned()
}

var registry = map[string]func() Scheduler{}

// register makes a scheduler known by its constructor; each file of one calls it.
func register(name string, create func() Scheduler) { registry[name] = create }

// Default is the name of the scheduler that is used where none is asked for.
const Default = "earliest"

// New makes the scheduler of a name; "" is the default one.
func New(name string) (Scheduler, error) {
	if name == "" {
		name = Default
	}
	if create, ok := registry[name]; ok {
		return create(), nil
	}
	return nil, fmt.Errorf("no scheduler %q; there are %s", name, strings.Join(Names(), ", "))
}

// Names are those of all schedulers, sorted.
func Names() []string {
	names := make([]string, 0, len(registry))
	for name := range registry {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// usable says whether a path may be chosen at all: a backup only when there is
// nothing else, a stalled one only when all are.
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

// least returns the index of the usable path with the least cost, −1 without
// any. With room, those that have none are left out.
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
