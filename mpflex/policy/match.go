package policy

import (
	"fmt"
	"strings"
)

// condition is one entry of a rule's match.
type condition interface {
	// holds tells whether it does. It must not allocate.
	holds(*Flow, *Conditions) bool
	// text is what is asked for, as the file has it: "443, 8000-8999".
	text() string
	// found says what was found instead: "port 80", "battery unknown".
	found(*Flow, *Conditions) string
}

// named is a condition with its key in the file.
type named struct {
	key string
	condition
}

// match is all conditions of a rule, the ones first that are quickly looked at.
type match []named

// failing returns the first condition that does not hold; nil when all do.
func (m match) failing(f *Flow, c *Conditions) *named {
	for i := range m {
		if !m[i].holds(f, c) {
			return &m[i]
		}
	}
	return nil
}

// String returns the conditions in words: `protocol tcp, domain *.example.org`.
func (m match) String() string {
	texts := make([]string, len(m))
	for i, c := range m {
		texts[i] = c.key + " " + c.text()
	}
	return strings.Join(texts, ", ")
}

// shownEntries is how many entries of a long list a message shows.
const shownEntries = 4

// listed returns the entries of a list as a message shows them.
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
