package method

import (
	"fmt"
	"slices"
	"strings"

	"mplab/bench/mpflex/origin"
	"mplab/bench/mpflex/rig"
)

// Congestions are the congestion controls of the benchmark.
var Congestions = []string{"cubic", "bbr"}

// Entry is a kind of method with a congestion control.
type Entry struct {
	Kind
	Congestion string
}

// String returns NAME/CONGESTION.
func (e Entry) String() string { return e.Name + "/" + e.Congestion }

// All returns all methods with all congestion controls, but reference methods only with the first.
func All() []Entry {
	var all []Entry
	for _, kind := range Kinds {
		for i, congestion := range Congestions {
			if i == 0 || !kind.Reference {
				all = append(all, Entry{kind, congestion})
			}
		}
	}
	return all
}

// ParseList parses comma-separated names. NAME selects a method with all congestion controls of All, NAME/CONGESTION a
// single one.
func ParseList(text string) ([]Entry, error) {
	var chosen []Entry
	for part := range strings.SplitSeq(text, ",") {
		found, err := parse(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		for _, e := range found {
			if slices.ContainsFunc(chosen, func(c Entry) bool { return c.String() == e.String() }) {
				return nil, fmt.Errorf("method %q: %s is there twice", part, e)
			}
			chosen = append(chosen, e)
		}
	}
	return chosen, nil
}

func parse(text string) ([]Entry, error) {
	name, congestion, one := strings.Cut(text, "/")
	at := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == name })
	if at < 0 {
		var names []string
		for _, k := range Kinds {
			names = append(names, k.Name)
		}
		return nil, fmt.Errorf("method %q: there are %s", text, strings.Join(names, ", "))
	}
	if one {
		if !slices.Contains(Congestions, congestion) {
			return nil, fmt.Errorf("method %q: the congestion controls are %s", text, strings.Join(Congestions, ", "))
		}
		return []Entry{{Kinds[at], congestion}}, nil
	}
	return slices.DeleteFunc(All(), func(e Entry) bool { return e.Name != name }), nil
}

// Contestant is an entry on a rig.
type Contestant struct {
	Entry
	Method
	place place
}

// New creates a contestant. Contestants of a rig need different indices, starting at 0.
func New(e Entry, r *rig.Rig, index int) *Contestant {
	p := place{r, e.Congestion, uint16(index)}
	return &Contestant{e, e.build(p), p}
}

// Listener returns the listener that the origin must serve for the contestant.
func (c *Contestant) Listener() origin.Listener {
	return origin.Listener{Address: c.place.origin(), Multipath: c.Name == MPTCP, Congestion: c.Congestion}
}

// Paths returns the number of paths that the contestant uses when everything works.
func (c *Contestant) Paths() int {
	if c.SinglePath {
		return 1
	}
	return 2
}
