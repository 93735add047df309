package policy

// Explanation is what became of a flow, and why.
type Explanation struct {
	Decision Decision
	Rules    []Verdict // in the order of the file, without the default
}

// Verdict is what one rule says about a flow.
type Verdict struct {
	Rule    *Rule
	Matched bool
	Taken   bool // it is the first that matched
	// Why are the conditions, all of which hold; or the first that does not,
	// and what was found: "port 80, not 443".
	Why string
}

// Explain says for each rule whether it matches the flow, those after the
// first one included. Conditions are looked at in one order, whatever that of
// the file.
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
