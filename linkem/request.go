package linkem

import (
	"encoding/json"
	"slices"
	"strings"
)

// request is what a line of the control socket asks for.
type request struct {
	op        string
	link      string
	up, down  Params
	seed      *uint64
	continues bool // chance and traces are not started again
}

var operations = []string{"apply", "counters", "state"}

// parseRequest reads a request strictly: only "apply" has more fields than "op", and it needs all of them but "seed"
// and "continue".
func parseRequest(line []byte) (request, error) {
	var asked request
	if err := checkSyntax(line); err != nil {
		return asked, err
	}
	var seed uint64
	given := false
	all := fields{
		"op":   stringInto(&asked.op),
		"link": stringInto(&asked.link),
		"up":   paramsInto(&asked.up),
		"down": paramsInto(&asked.down),
		"seed": func(path string, raw json.RawMessage) error {
			given = true
			return seedInto(&seed)(path, raw)
		},
		"continue": boolInto(&asked.continues),
	}
	var only struct {
		Op string `json:"op"`
	}
	_ = json.Unmarshal(line, &only) // an op that is not a text is told below
	allowed, required := fields{"op": all["op"]}, []string{"op"}
	if only.Op == "apply" {
		allowed, required = all, []string{"op", "link", "up", "down"}
	}
	if err := readObject("", line, allowed, required...); err != nil {
		return asked, err
	}
	if !slices.Contains(operations, asked.op) {
		return asked, fieldErrorf("op", "unknown operation %q; there are %s", asked.op, strings.Join(operations, ", "))
	}
	if given && asked.continues {
		return asked, fieldErrorf("seed", "starts the random sequences again, and continue asks for the opposite")
	}
	if given {
		asked.seed = &seed
	}
	return asked, nil
}
