package control

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Operations answers requests that consist of a name only, {"op":"NAME"}.
type Operations map[string]func() (any, error)

// Answer is a Handler. For any other request it returns an error that lists the
// operations.
func (o Operations) Answer(request []byte) (any, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(request, &fields); err != nil || fields == nil {
		return nil, o.refuse(`a request is a JSON object, {"op":"NAME"}`)
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if field != "op" {
			return nil, fmt.Errorf("%s: unknown key; allowed: op", field)
		}
	}
	if fields["op"] == nil {
		return nil, o.refuse("op: missing")
	}
	var name string
	if err := json.Unmarshal(fields["op"], &name); err != nil {
		return nil, o.refuse("op: must be a string")
	}
	answer, known := o[name]
	if !known {
		return nil, o.refuse(fmt.Sprintf("op: unknown operation %q", name))
	}
	return answer()
}

// refuse returns an error with the problem and the list of operations.
func (o Operations) refuse(problem string) error {
	return fmt.Errorf("%s; there are %s", problem, strings.Join(slices.Sorted(maps.Keys(o)), ", "))
}
