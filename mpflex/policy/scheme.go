package policy

import (
	"fmt"
	"slices"
	"strings"

	"mplab/mpflex/internal/transport/sched"
)

// DefaultScheduler is the name that stands for the session's own scheduler.
const DefaultScheduler = "default"

// schedulers returns the names that a rule file may give.
func schedulers() []string { return append(sched.Names(), DefaultScheduler) }

const (
	maxPaths     = 8  // in one scheme
	maxScheduler = 32 // bytes of a scheduler's name
)

// Scheme is how a flow uses the paths of a session. It is not changed once
// made.
type Scheme struct {
	Scheduler string
	// Paths are the interfaces and kinds that carry the flow, in the order of
	// the file; empty: every path that is not in Backup.
	Paths []string
	// Backup are those that carry it only while none of Paths can.
	Backup []string
}

// everyPath is the scheme of label 0.
var everyPath = &Scheme{Scheduler: DefaultScheduler}

// Use is how a scheme uses a path.
type Use uint8

// The uses of a path.
const (
	Excluded Use = iota // never
	Active              // it carries the flow
	Backup              // it carries the flow while no active path can
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

// Use tells how the scheme uses the path over an interface. The interface's
// own name counts before its kind.
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

// String returns the scheme in words: "minrtt over wifi, cellular; backup eth0".
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

// check tells what is wrong with a scheme that arrived from elsewhere.
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

// isScheduler tells whether a text can be the name of a scheduler.
func isScheduler(text string) bool {
	for _, c := range []byte(text) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return text != "" && len(text) <= maxScheduler
}
