package policy

import (
	"fmt"
	"slices"
	"strings"

	"mplab/mpflex/internal/transport/sched"
)

// DefaultScheduler is the name of the session's default scheduler.
const DefaultScheduler = "default"

// schedulers returns the names that a rule file may use.
func schedulers() []string { return append(sched.Names(), DefaultScheduler) }

const (
	maxPaths     = 8  // in one scheme
	maxScheduler = 32 // bytes of a scheduler's name
)

// Scheme defines how a flow uses the paths of a session. It is immutable.
type Scheme struct {
	Scheduler string
	// Paths lists the interfaces and kinds that carry the flow, in the order of the
	// file. Empty: every path that is not in Backup.
	Paths []string
	// Backup lists those that carry the flow only while no path of Paths can.
	Backup []string
}

// everyPath is the scheme of label 0.
var everyPath = &Scheme{Scheduler: DefaultScheduler}

// Use is the way a scheme uses a path.
type Use uint8

// The uses of a path.
const (
	Excluded Use = iota // never
	Active              // carries the flow
	Backup              // carries the flow while no active path can
)

func (u Use) String() string {
	switch u {
	case Active:
		return "active"
	case Backup:
		return "backup"
	}
	return "excluded"
}

// Use returns how the scheme uses the path over an interface. The interface's name has
// priority over its kind.
func (s *Scheme) Use(device string) Use {
	for _, name := range [...]string{device, string(KindOf(device))} {
		switch {
		case slices.Contains(s.Paths, name):
			return Active
		case slices.Contains(s.Backup, name):
			return Backup
		}
	}
	if len(s.Paths) == 0 {
		return Active
	}
	return Excluded
}

// String returns the scheme as text: "minrtt over wifi, cellular; backup eth0".
func (s *Scheme) String() string {
	text := s.Scheduler + " over "
	switch {
	case len(s.Paths) > 0:
		text += strings.Join(s.Paths, ", ")
	case len(s.Backup) > 0:
		text += "every other path"
	default:
		text += "every path"
	}
	if len(s.Backup) > 0 {
		text += "; backup " + strings.Join(s.Backup, ", ")
	}
	return text
}

func (s *Scheme) equal(other *Scheme) bool {
	return s.Scheduler == other.Scheduler && slices.Equal(s.Paths, other.Paths) && slices.Equal(s.Backup, other.Backup)
}

// check returns an error if a scheme from the other side is invalid.
func (s *Scheme) check() error {
	if !isScheduler(s.Scheduler) {
		return fmt.Errorf("%s is no name of a scheduler", show(s.Scheduler))
	}
	if len(s.Paths)+len(s.Backup) > maxPaths {
		return fmt.Errorf("more than %d paths", maxPaths)
	}
	seen := make([]string, 0, maxPaths)
	for _, name := range slices.Concat(s.Paths, s.Backup) {
		if !isInterface(name) {
			return fmt.Errorf("%s is no name of a path", show(name))
		}
		if slices.Contains(seen, name) {
			return fmt.Errorf("the path %s is given twice", show(name))
		}
		seen = append(seen, name)
	}
	return nil
}

// isScheduler reports whether a text can be the name of a scheduler.
func isScheduler(text string) bool {
	for _, c := range []byte(text) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return text != "" && len(text) <= maxScheduler
}
