package policy

import "fmt"

// Action is the treatment of a flow.
type Action uint8

// The actions.
const (
	Carry  Action = iota + 1 // through the proxy, with a scheme
	Block                    // refused
	Direct                   // without the proxy, by the phone's routes
)

func (a Action) String() string {
	switch a {
	case Carry:
		return "carry"
	case Block:
		return "block"
	case Direct:
		return "direct"
	}
	return "unknown"
}

// Rule is one rule of a file, or its default.
type Rule struct {
	Name       string // "default" for the default
	Index      int    // in the file, from 0; -1 for the default
	Line       int    // in the file, from 1
	Action     Action
	Scheme     *Scheme // nil unless Action is Carry
	SchemeName string  // as in the file; "" if the rule contains the scheme
	Label      byte    // of the scheme

	match match
	why   string
}

// Match returns the conditions as text; "" for the default.
func (r *Rule) Match() string { return r.match.String() }

// What returns the action as text: `block`, or `carry: minrtt over wifi, cellular
// (label 2)`.
func (r *Rule) What() string {
	if r.Action != Carry {
		return r.Action.String()
	}
	return fmt.Sprintf("carry: %s (label %d)", r.Scheme, r.Label)
}

// Policy is a parsed rule file. It is immutable.
type Policy struct {
	File string
	Plan *Plan // nil: the file has no plan

	rules    []Rule
	matches  []match // of the rules, contiguous for Decide
	fallback Rule
	schemes  []*Scheme // the named ones, in the order of the file
	table    *Table
	needs    Needs
}

// Rules returns the rules in order, without the default.
func (p *Policy) Rules() []Rule { return p.rules }

// Default returns the rule for flows that no rule matches.
func (p *Policy) Default() *Rule { return &p.fallback }

// Table returns the schemes by label. It includes schemes that are no longer used, as
// older flows may have their labels.
func (p *Policy) Table() *Table { return p.table }

// Needs lists the properties of a flow that some rule uses. Others need not be found
// before a flow starts.
type Needs struct {
	Owner   bool // uid or process
	Package bool
	Domain  bool
}

// Needs returns the properties that the rules use.
func (p *Policy) Needs() Needs { return p.needs }

// Decision is the rule that decided a flow.
type Decision struct {
	*Rule
}

// Why returns the deciding rule and its conditions as text. The text is made when the
// file is read.
func (d Decision) Why() string { return d.why }

// Decide returns the first rule whose conditions all hold, or the default. It does not
// allocate.
func (p *Policy) Decide(f *Flow, c *Conditions) Decision {
	for i, m := range p.matches {
		if m.failing(f, c) == nil {
			return Decision{&p.rules[i]}
		}
	}
	return Decision{&p.fallback}
}

// label assigns labels to all schemes and reasons to all rules, after the file was
// read.
func (p *Policy) label(previous *Table) (err error) {
	schemes := p.schemes
	all := p.every()
	for _, rule := range all {
		if rule.Action == Carry {
			schemes = append(schemes, rule.Scheme)
		}
	}
	if p.table, err = tableOf(schemes, previous); err != nil {
		return err
	}
	for i := range p.rules {
		p.matches = append(p.matches, p.rules[i].match)
	}
	for _, rule := range all {
		if rule.Action == Carry {
			rule.Label, _ = p.table.label(rule.Scheme)
			rule.Scheme, _ = p.table.Scheme(rule.Label)
		}
		rule.why = fmt.Sprintf("rule %s (%s:%d): %s", rule.Name, p.File, rule.Line, rule.match)
		for _, c := range rule.match {
			switch c.key {
			case "uid", "process":
				p.needs.Owner = true
			case "package":
				p.needs.Package = true
			case "domain":
				p.needs.Domain = true
			}
		}
	}
	p.fallback.why = fmt.Sprintf("no rule matched: default (%s:%d)", p.File, p.fallback.Line)
	return nil
}

// every returns the rules and the default.
func (p *Policy) every() []*Rule {
	all := make([]*Rule, 0, len(p.rules)+1)
	for i := range p.rules {
		all = append(all, &p.rules[i])
	}
	return append(all, &p.fallback)
}
