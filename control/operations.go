package control

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Operations answer requests that say nothing but what is asked for,
// {"op":"NAME"}, by that name.
type Operations map[string]func() (any, error)

// Answer is a Handler. What is no such request is an error that says what is
// allowed.
func (o Operations) Answer(request []byte) (any, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(request, &fields); err != nil || fields == nil {
		return nil, o.refuse(`a request is a JSON object, {"op":"NAME"}`)
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if field != "op" {
			return nil, fmt.Errorf("%s: unknown field; allowed is op", field)
		}
	}
	if fields["op"] == nil {
		return nil, o.refuse("op: missing")
	}
	var name string
	if err := json.Unmarshal(fields["op"], &name); err != nil {
		return nil, o.refuse("op: must be a text")
	}
	answer, known := o[name]
	if !known {
		return nil, o.refuse(fmt.Sprintf("op: unknown operation %q", name))
	}
	return answer()
}

// refuse tells a problem, and which operations there are.
func (o Operations) refuse(problem string) error {
	return fmt.Errorf("%s; there are %s", problem, strings.Join(slices.Sorted(maps.Keys(o)), ", "))
}
