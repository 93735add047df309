package config

import (
	"encoding/json"
	"slices"
	"strings"

	"mplab/internal/strictjson"
	"mplab/linkem/model"
)

// Request is a request of the control socket.
type Request struct {
	Op        string
	Link      string
	Up, Down  model.Params
	Seed      *uint64
	Continues bool // do not restart random sequences and traces
}

var operations = []string{"apply", "counters", "state"}

// ParseRequest reads a request strictly. Only "apply" has fields besides "op"; all of them except "seed" and "continue"
// are required.
func ParseRequest(line []byte) (Request, error) {
	var asked Request
	if err := strictjson.CheckSyntax(line); err != nil {
		return asked, err
	}
	var seed uint64
	given := false
	all := strictjson.Fields{
		"op":   strictjson.String(&asked.Op),
		"link": strictjson.String(&asked.Link),
		"up":   paramsInto(&asked.Up),
		"down": paramsInto(&asked.Down),
		"seed": func(path string, raw json.RawMessage) error {
			given = true
			return strictjson.Seed(&seed)(path, raw)
		},
		"continue": strictjson.Bool(&asked.Continues),
	}
	var only struct {
		Op string `json:"op"`
	}
	_ = json.Unmarshal(line, &only) // an op that is not a string is reported below
	allowed, required := strictjson.Fields{"op": all["op"]}, []string{"op"}
	if only.Op == "apply" {
		allowed, required = all, []string{"op", "link", "up", "down"}
	}
	if err := strictjson.Object("", line, allowed, required...); err != nil {
		return asked, err
	}
	if !slices.Contains(operations, asked.Op) {
		return asked, strictjson.Errorf("op", "unknown operation %q; there are %s", asked.Op, strings.Join(operations, ", "))
	}
	if given && asked.Continues {
		return asked, strictjson.Errorf("seed", "not allowed with continue: a seed restarts the random sequences")
	}
	if given {
		asked.Seed = &seed
	}
	return asked, nil
}
