package policy

// Explanation is the decision for a flow, with its reasons.
type Explanation struct {
	Decision Decision
	Rules    []Verdict // in the order of the file, without the default
}

// Verdict is the result of one rule for a flow.
type Verdict struct {
	Rule    *Rule
	Matched bool
	Taken   bool // it is the first that matches
	// Why lists the conditions if all hold. Otherwise it has the first one that does
	// not, with the value found: "port 80, not 443".
	Why string
}

// Explain reports for each rule whether it matches the flow, also for rules after the
// first match. Conditions are checked in a fixed order, not that of the file.
func (p *Policy) Explain(f *Flow, c *Conditions) Explanation {
	e := Explanation{Decision: p.Decide(f, c), Rules: make([]Verdict, len(p.rules))}
	for i := range p.rules {
		rule := &p.rules[i]
		v := Verdict{Rule: rule, Matched: true, Taken: e.Decision.Rule == rule, Why: rule.Match()}
		if failing := rule.match.failing(f, c); failing != nil {
			v.Matched, v.Why = false, failing.found(f, c)+", not "+failing.text()
		}
		e.Rules[i] = v
	}
	return e
}
