package policy

import (
	"fmt"
	"strings"
)

// condition is one condition of a rule.
type condition interface {
	// holds reports whether the condition holds. It must not allocate.
	holds(*Flow, *Conditions) bool
	// text returns the condition as in the file: "443, 8000-8999".
	text() string
	// found returns the flow's value: "port 80", "battery unknown".
	found(*Flow, *Conditions) string
}

// named is a condition with its key.
type named struct {
	key string
	condition
}

// match holds all conditions of a rule. Those that are quick to check come first.
type match []named

// failing returns the first condition that does not hold, or nil if all hold.
func (m match) failing(f *Flow, c *Conditions) *named {
	for i := range m {
		if !m[i].holds(f, c) {
			return &m[i]
		}
	}
	return nil
}

// String returns the conditions as text: `protocol tcp, domain *.example.org`.
func (m match) String() string {
	texts := make([]string, len(m))
	for i, c := range m {
		texts[i] = c.key + " " + c.text()
	}
	return strings.Join(texts, ", ")
}

// shownEntries is how many entries of a long list a message shows.
const shownEntries = 4

// listed returns the entries of a list for a message.
func listed[T any](entries []T, text func(T) string) string {
	var b strings.Builder
	for i, entry := range entries {
		if i == shownEntries && len(entries) > shownEntries+1 {
			fmt.Fprintf(&b, " or %d more", len(entries)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(text(entry))
	}
	return b.String()
}
