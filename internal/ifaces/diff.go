package ifaces

import "slices"

// Kind is what happened to an interface.
type Kind int

// The kinds of events.
const (
	// Up: it can be used now.
	Up Kind = iota + 1
	// Down: it cannot be used any more.
	Down
	// Addresses: it has other addresses than before. A connection whose local
	// address is not among them is lost.
	Addresses
	// Routes: a default route came or went.
	Routes
)

// String is the name of the kind, for a log.
func (k Kind) String() string {
	return map[Kind]string{Up: "up", Down: "down", Addresses: "addresses", Routes: "routes"}[k]
}

// Event is a change of one interface.
type Event struct {
	Kind      Kind
	Interface Interface // as it is now; with Down, as it was
}

// Diff returns what happened from one snapshot to a later one: first what went
// down, then the rest in the order of the later one. An interface that was made
// anew under its old name went down and came up.
func Diff(before, after []Interface) []Event {
	var events []Event
	for _, old := range before {
		if find(after, old) < 0 {
			events = append(events, Event{Down, old})
		}
	}
	for _, now := range after {
		i := find(before, now)
		if i < 0 {
			events = append(events, Event{Up, now})
			continue
		}
		old := before[i]
		if !slices.Equal(old.Addrs, now.Addrs) {
			events = append(events, Event{Addresses, now})
		}
		if old.DefaultIPv4 != now.DefaultIPv4 || old.DefaultIPv6 != now.DefaultIPv6 {
			events = append(events, Event{Routes, now})
		}
	}
	return events
}

func find(interfaces []Interface, which Interface) int {
	return slices.IndexFunc(interfaces, func(i Interface) bool { return i.Name == which.Name && i.Index == which.Index })
}
