package policy

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

const (
	maxRules = 1000
	maxName  = 64 // characters of a rule's or a scheme's name
)

// Options are the facts that a rule file is checked against.
type Options struct {
	Interfaces []string // interfaces that rules may name; nil: every name of a known kind
}

// Load reads a rule file. Its errors are returned as a *FileError.
func Load(file string, options Options) (*Policy, error) {
	data, err := readFile(file)
	if err != nil {
		return nil, err
	}
	return Parse(file, data, options)
}

// readFile reads a file up to just beyond the maximum size of a rule file.
func readFile(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	data, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err != nil {
		return nil, err
	}
	return data, nil
}

// Parse parses the text of a rule file. file is its name in messages.
func Parse(file string, data []byte, options Options) (*Policy, error) {
	return parse(file, data, options, nil)
}

func parse(file string, data []byte, options Options, previous *Table) (*Policy, error) {
	r := &reader{devices: options.Interfaces}
	p := &Policy{File: file}
	if root := r.document(data); root != nil {
		r.policy(field{root, "", root.Line}, p)
	}
	if err := r.failure(file); err != nil {
		return nil, err
	}
	if err := p.label(previous); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

func (r *reader) policy(f field, p *Policy) {
	fields, ok := r.mapping(f, "policy", "plan", "schemes", "rules", "default")
	if !ok {
		return
	}
	for _, key := range []string{"policy", "rules", "default"} {
		if _, given := fields[key]; !given {
			r.bad(f.line, "", "key '%s' is missing", key)
		}
	}
	if version, given := fields["policy"]; given && version.node.Value != "1" {
		r.wants(version, "1, the version of the format,")
	}
	if plan, given := fields["plan"]; given {
		p.Plan = r.plan(plan)
	}
	schemes := map[string]*Scheme{}
	if section, given := fields["schemes"]; given {
		schemes = r.schemes(section, p)
	}
	if rules, given := fields["rules"]; given {
		r.rules(rules, schemes, p)
	}
	if action, given := fields["default"]; given {
		p.fallback = Rule{Name: "default", Line: action.line, Index: -1}
		r.action(action, schemes, &p.fallback)
	}
}

// schemes parses the named schemes.
func (r *reader) schemes(f field, p *Policy) map[string]*Scheme {
	schemes := make(map[string]*Scheme)
	if f.node.Kind != yaml.MappingNode {
		r.wants(f, "a mapping of names to schemes")
		return schemes
	}
	for name, value := range r.pairs(f) {
		if err := checkName(name); err != nil {
			r.bad(value.line, f.place, "%v", err)
			continue
		}
		if name == "block" || name == "direct" {
			r.bad(value.line, value.place, "'%s' is an action of its own: give the scheme another name", name)
			continue
		}
		schemes[name] = r.scheme(value)
		p.schemes = append(p.schemes, schemes[name])
	}
	return schemes
}

func checkName(name string) error {
	if utf8.RuneCountInString(name) > maxName {
		return fmt.Errorf("%s is longer than a name can be (%d characters)", show(name), maxName)
	}
	for _, c := range name {
		if !unicode.IsPrint(c) {
			return fmt.Errorf("%s has a character that cannot be printed", show(name))
		}
	}
	return nil
}

func (r *reader) scheme(f field) *Scheme {
	scheme := &Scheme{Scheduler: DefaultScheduler}
	fields, ok := r.mapping(f, "scheduler", "paths", "backup")
	if !ok {
		return scheme
	}
	if scheduler, given := fields["scheduler"]; given {
		scheme.Scheduler, _ = valueOf(r, scheduler, "the name of a scheduler", parseScheduler)
	}
	if paths, given := fields["paths"]; given {
		scheme.Paths, _ = valuesOf(r, paths, "the name of a path", r.parsePath)
	}
	backup, given := fields["backup"]
	if !given {
		return scheme
	}
	scheme.Backup, _ = valuesOf(r, backup, "the name of a path", r.parsePath)
	for _, name := range scheme.Backup {
		if slices.Contains(scheme.Paths, name) {
			r.bad(backup.line, backup.place, "'%s' is among the paths already", name)
		}
	}
	if n := len(scheme.Paths) + len(scheme.Backup); n > maxPaths {
		r.bad(f.line, f.place, "%d paths; a scheme has %d at most", n, maxPaths)
	}
	return scheme
}

func parseScheduler(text string) (string, error) {
	if known := schedulers(); !slices.Contains(known, text) {
		return "", errors.New(unknown("scheduler", text, known))
	}
	return text, nil
}

func (r *reader) rules(f field, schemes map[string]*Scheme, p *Policy) {
	items := r.items(f, "a list of rules")
	if len(items) > maxRules {
		r.bad(items[maxRules].line, f.place, "%d rules; a file has %d at most", len(items), maxRules)
		return
	}
	p.rules = make([]Rule, len(items))
	names := make(map[string]int)
	for i, item := range items {
		rule := &p.rules[i]
		rule.Line, rule.Index = item.line, i
		fields, ok := r.mapping(item, "name", "match", "action")
		if !ok {
			continue
		}
		for _, key := range []string{"name", "match", "action"} {
			if _, given := fields[key]; !given {
				r.bad(item.line, item.place, "key '%s' is missing", key)
			}
		}
		if name, given := fields["name"]; given {
			rule.Name = r.ruleName(name, names)
		}
		if action, given := fields["action"]; given {
			r.action(action, schemes, rule)
		}
		if conditions, given := fields["match"]; given {
			before := len(r.problems)
			if r.match(conditions, rule, p); len(r.problems) == before {
				r.unreached(conditions, p.rules[:i], rule)
			}
		}
	}
}

func (r *reader) ruleName(f field, lines map[string]int) string {
	name, ok := r.text(f, "a name")
	if !ok {
		return ""
	}
	if err := checkName(name); err != nil {
		r.bad(f.line, f.place, "%v", err)
	}
	if first, twice := lines[name]; twice || name == "default" {
		if name == "default" {
			r.bad(f.line, f.place, "'default' is what the file ends with: give the rule another name")
			return name
		}
		r.bad(f.line, f.place, "rule %s is given twice (first in line %d)", show(name), first)
		return name
	}
	lines[name] = f.line
	return name
}

// unreached notes a rule that has the same conditions as an earlier one.
func (r *reader) unreached(f field, before []Rule, rule *Rule) {
	for i := range before {
		if reflect.DeepEqual(before[i].match, rule.match) {
			r.bad(f.line, f.place, "same conditions as the rule in line %d: this rule is never reached", before[i].Line)
			return
		}
	}
}

// action parses "block", "direct", the name of a scheme, or a scheme.
func (r *reader) action(f field, schemes map[string]*Scheme, rule *Rule) {
	const what = "block, direct, the name of a scheme, or a mapping with the keys scheduler, paths, backup"
	if f.node.Kind == yaml.MappingNode {
		rule.Action, rule.Scheme = Carry, r.scheme(f)
		return
	}
	text, ok := r.text(f, what)
	if !ok {
		return
	}
	switch scheme := schemes[text]; {
	case text == "block":
		rule.Action = Block
	case text == "direct":
		rule.Action = Direct
	case scheme != nil:
		rule.Action, rule.Scheme, rule.SchemeName = Carry, scheme, text
	default:
		r.bad(f.line, f.place, "%s", unknown("action", text, append(slices.Collect(maps.Keys(schemes)), "block", "direct")))
	}
}
