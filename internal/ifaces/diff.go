package ifaces

import "slices"

// Kind is the kind of a change of an interface.
type Kind int

// Kinds of changes.
const (
	// Up: the interface has become usable.
	Up Kind = iota + 1
	// Down: the interface is no longer usable.
	Down
	// Addresses: its addresses have changed. A connection with another local
	// address is lost.
	Addresses
	// Routes: a default route was added or removed.
	Routes
)

// String returns the name of the kind, for a log.
func (k Kind) String() string {
	return map[Kind]string{Up: "up", Down: "down", Addresses: "addresses", Routes: "routes"}[k]
}

// Event is a change of one interface.
type Event struct {
	Kind      Kind
	Interface Interface // the current state; with Down, the previous one
}

// Diff returns the changes from one snapshot to a later one: first interfaces
// that went down, then the others in the order of the later snapshot. An
// interface that was recreated with the same name counts as down and up.
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
