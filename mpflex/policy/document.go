package policy

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

const (
	maxFileSize = 1 << 20 // bytes
	maxDepth    = 20      // levels of mappings and lists
)

// Problem is one error in a rule file.
type Problem struct {
	Line  int    // from 1
	Place string // such as rules[0].match.port; "": the whole file
	Text  string // the value found and the values allowed
}

// FileError holds all errors in a rule file, by ascending line.
type FileError struct {
	File     string // as the user gave it
	Problems []Problem
}

// Error returns one line per problem: "FILE:LINE: PLACE: TEXT".
func (e *FileError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		place := p.Place
		if place != "" {
			place += ": "
		}
		lines[i] = fmt.Sprintf("%s:%d: %s%s", e.File, p.Line, place, p.Text)
	}
	return strings.Join(lines, "\n")
}

// reader parses a YAML document strictly. It collects the problems and continues after
// each.
type reader struct {
	devices  []string // known interfaces; nil: unknown
	problems []Problem
}

func (r *reader) bad(line int, place, format string, args ...any) {
	r.problems = append(r.problems, Problem{line, place, fmt.Sprintf(format, args...)})
}

// failure returns the problems, or nil if there are none.
func (r *reader) failure(file string) error {
	if len(r.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(r.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return &FileError{file, r.problems}
}

// document returns the only value in the file. It returns nil after noting a problem.
func (r *reader) document(data []byte) *yaml.Node {
	if len(data) > maxFileSize {
		r.bad(1, "", "larger than 1 MiB: not a rule file")
		return nil
	}
	if at := invalidUTF8(data); at >= 0 {
		r.bad(1+bytes.Count(data[:at], []byte("\n")), "", "not UTF-8 text (byte 0x%02x)", data[at])
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil { // fails only for invalid options
		r.bad(1, "", "not YAML: %v", err)
		return nil
	}
	var first, second yaml.Node
	err = loader.Load(&first)
	switch {
	case errors.Is(err, io.EOF), err == nil && len(first.Content) == 0:
		r.bad(1, "", "the file is empty; it needs the keys policy, rules and default")
		return nil
	case err != nil:
		r.syntax(err, data)
		return nil
	}
	if err := loader.Load(&second); err == nil {
		r.bad(second.Line, "", "a second document: one file holds one")
		return nil
	} else if !errors.Is(err, io.EOF) {
		r.syntax(err, data)
		return nil
	}
	if !r.plain(first.Content[0], 1) {
		return nil
	}
	return first.Content[0]
}

func invalidUTF8(data []byte) int {
	for at := 0; at < len(data); {
		c, size := utf8.DecodeRune(data[at:])
		if c == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

// syntax notes a syntax error of the YAML library. The usual cause is a value that
// needs quotes.
func (r *reader) syntax(err error, data []byte) {
	var at *yaml.LoadError
	if !errors.As(err, &at) {
		r.bad(1, "", "not YAML: %v", err)
		return
	}
	mark := at.Mark
	if begun := at.ContextMark; begun.Line == mark.Line && strings.IndexByte(special, character(data, begun.Line, begun.Column)) >= 0 {
		mark = begun
	}
	text := "not YAML: " + at.Message
	switch first := character(data, mark.Line, mark.Column); {
	case first == '\t':
		text = "a tab: YAML allows only spaces"
	case strings.IndexByte(special, first) >= 0:
		text = fmt.Sprintf("a value that begins with %c stands in quotes", first)
	}
	r.bad(max(mark.Line, 1), "", "%s", text)
}

// special holds the characters that a plain value cannot start with.
const special = ">|@`%*&!"

// character returns the byte at a line and column, both from 1, or 0 if it does not
// exist.
func character(data []byte, line, column int) byte {
	for ; line > 1; line-- {
		_, rest, found := bytes.Cut(data, []byte("\n"))
		if !found {
			return 0
		}
		data = rest
	}
	if column < 1 || column > len(data) {
		return 0
	}
	return data[column-1]
}

// plain rejects features with which a file could mean more than it shows: aliases,
// anchors, tags, merge keys, and deep nesting.
func (r *reader) plain(n *yaml.Node, depth int) bool {
	switch {
	case depth > maxDepth:
		r.bad(n.Line, "", "more than %d levels deep", maxDepth)
	case n.Kind == yaml.AliasNode:
		r.bad(n.Line, "", "a value that begins with * stands in quotes")
	case n.Anchor != "":
		r.bad(n.Line, "", "a value that begins with & stands in quotes")
	case n.Style&yaml.TaggedStyle != 0:
		r.bad(n.Line, "", "a value that begins with ! stands in quotes")
	case n.Tag == "!!merge":
		r.bad(n.Line, "", "the key << is not known: write the values out")
	default:
		for _, child := range n.Content {
			if !r.plain(child, depth+1) {
				return false
			}
		}
		return true
	}
	return false
}

// field is one value of a mapping, or one item of a list.
type field struct {
	node  *yaml.Node
	place string
	line  int // of the key
}

// describe returns the kind of value that was found.
func (f field) describe() string {
	switch {
	case f.node.Kind == yaml.MappingNode:
		return "a mapping"
	case f.node.Kind == yaml.SequenceNode:
		return "a list"
	case f.node.Tag == "!!null" && f.node.Style == 0:
		return "nothing"
	}
	return show(f.node.Value)
}

// wants notes that another kind of value is needed.
func (r *reader) wants(f field, what string) {
	r.bad(f.line, f.place, "found %s, %s is needed", f.describe(), what)
}

// mapping returns the fields of a mapping. Other keys than these are problems.
func (r *reader) mapping(f field, keys ...string) (map[string]field, bool) {
	if f.node.Kind != yaml.MappingNode {
		r.wants(f, "a mapping with the keys "+strings.Join(keys, ", "))
		return nil, false
	}
	fields := make(map[string]field)
	for key, value := range r.pairs(f) {
		if !slices.Contains(keys, key) {
			r.bad(value.line, f.place, "%s", unknown("key", key, keys))
			continue
		}
		fields[key] = value
	}
	return fields, true
}

// pairs iterates over a mapping in the order of the file. A duplicate key is noted and
// skipped.
func (r *reader) pairs(f field) func(yield func(string, field) bool) {
	return func(yield func(string, field) bool) {
		lines := make(map[string]int)
		for i := 0; i+1 < len(f.node.Content); i += 2 {
			key, value := f.node.Content[i], f.node.Content[i+1]
			if key.Kind != yaml.ScalarNode {
				r.bad(key.Line, f.place, "%s as a key: a key is one word", field{node: key}.describe())
				continue
			}
			if first, twice := lines[key.Value]; twice {
				r.bad(key.Line, f.place, "key %s is given twice (first in line %d)", show(key.Value), first)
				continue
			}
			lines[key.Value] = key.Line
			place := key.Value
			if f.place != "" {
				place = f.place + "." + place
			}
			if !yield(key.Value, field{value, place, key.Line}) {
				return
			}
		}
	}
}

// items returns the items of a list.
func (r *reader) items(f field, what string) []field {
	if f.node.Kind != yaml.SequenceNode {
		r.wants(f, what)
		return nil
	}
	items := make([]field, len(f.node.Content))
	for i, node := range f.node.Content {
		items[i] = field{node, fmt.Sprintf("%s[%d]", f.place, i), node.Line}
	}
	return items
}

// text returns a non-empty scalar.
func (r *reader) text(f field, what string) (string, bool) {
	if f.node.Kind != yaml.ScalarNode || f.node.Tag == "!!null" && f.node.Style == 0 || strings.TrimSpace(f.node.Value) == "" {
		r.wants(f, what)
		return "", false
	}
	return f.node.Value, true
}

// valueOf parses one value.
func valueOf[T any](r *reader, f field, what string, parse func(string) (T, error)) (value T, ok bool) {
	text, ok := r.text(f, what)
	if !ok {
		return value, false
	}
	value, err := parse(text)
	if err != nil {
		r.bad(f.line, f.place, "%v", err)
		return value, false
	}
	return value, true
}

// valuesOf parses one value, or a non-empty list without duplicates.
func valuesOf[T any](r *reader, f field, what string, parse func(string) (T, error)) (values []T, ok bool) {
	if f.node.Kind != yaml.SequenceNode {
		value, ok := valueOf(r, f, what+", or a list of them,", parse)
		return []T{value}, ok
	}
	if len(f.node.Content) == 0 {
		r.bad(f.line, f.place, "an empty list never matches")
		return nil, false
	}
	ok = true
	lines := make(map[string]int)
	for _, item := range r.items(f, what) {
		value, good := valueOf(r, item, what, parse)
		if !good {
			ok = false
			continue
		}
		values = append(values, value)
		written := fmt.Sprint(value)
		if first, twice := lines[written]; twice {
			r.bad(item.line, item.place, "%s is given twice (first in line %d)", show(item.node.Value), first)
			ok = false
			continue
		}
		lines[written] = item.line
	}
	return values, ok
}
