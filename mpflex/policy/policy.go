package policy

import "fmt"

// Action is what is done with a flow.
type Action uint8

// The actions.
const (
	Carry  Action = iota + 1 // through the proxy, by a scheme
	Block                    // refused
	Direct                   // past the proxy, as the phone's own routes have it
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
	Name       string // of the default: "default"
	Index      int    // from 0 in the file; of the default: -1
	Line       int    // in the file, from 1
	Action     Action
	Scheme     *Scheme // nil unless the action is Carry
	SchemeName string  // as the file names it; "" when it is written in the rule itself
	Label      byte    // of the scheme

	match match
	why   string
}

// Match returns the conditions in words; "" for the default.
func (r *Rule) Match() string { return r.match.String() }

// What returns what the rule does, in words: `block`, or
// `carry: minrtt over wifi, cellular (label 2)`.
func (r *Rule) What() string {
	if r.Action != Carry {
		return r.Action.String()
	}
	return fmt.Sprintf("carry: %s (label %d)", r.Scheme, r.Label)
}

// Policy is a rule file that was read. It is not changed once made.
type Policy struct {
	File string
	Plan *Plan // nil when the file has none

	rules    []Rule
	matches  []match // of the rules, close together for Decide
	fallback Rule
	schemes  []*Scheme // with a name, in the order of the file
	table    *Table
	needs    Needs
}

// Rules returns the rules in their order, without the default.
func (p *Policy) Rules() []Rule { return p.rules }

// Default returns what holds for flows that no rule matches.
func (p *Policy) Default() *Rule { return &p.fallback }

// Table returns the schemes by their labels, those included that are no longer
// used and that flows from before may still have.
func (p *Policy) Table() *Table { return p.table }

// Needs are the things that some rule asks for. What none asks for need not be
// found out before a flow begins.
type Needs struct {
	Owner   bool // uid or process
	Package bool
	Domain  bool
}

// Needs returns what the rules ask for.
func (p *Policy) Needs() Needs { return p.needs }

// Decision is what a policy says about a flow.
type Decision struct {
	*Rule
}

// Why says which rule decided, and on what conditions. The text is made when
// the file is read.
func (d Decision) Why() string { return d.why }

// Decide returns the first rule of which all conditions hold, or the default.
// It does not allocate.
func (p *Policy) Decide(f *Flow, c *Conditions) Decision {
	for i, m := range p.matches {
		if m.failing(f, c) == nil {
			return Decision{&p.rules[i]}
		}
	}
	return Decision{&p.fallback}
}

// label gives every scheme its label and every rule its reason, once the file
// was read.
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
