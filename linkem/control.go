package linkem

import (
	"net/netip"
	"strings"
)

// controller answers what comes over the control socket.
type controller struct{ links []*link }

// linkState is the answer to "state", for one link.
type linkState struct {
	A             string                   `json:"a"`
	B             string                   `json:"b"`
	Seed          uint64                   `json:"seed"`
	Up            Params                   `json:"up"`
	Down          Params                   `json:"down"`
	DelayByPrefix map[netip.Prefix]float64 `json:"delay_by_prefix,omitempty"`
	Scheduling    string                   `json:"scheduling"`
}

// linkCounters are the answer to "counters", for one link.
type linkCounters struct {
	Up   Counters `json:"up"`
	Down Counters `json:"down"`
}

// answer is a control.Handler.
func (c controller) answer(line []byte) (any, error) {
	asked, err := parseRequest(line)
	if err != nil {
		return nil, err
	}
	switch asked.op {
	case "apply":
		return nil, c.apply(asked)
	case "state":
		return c.state()
	default:
		return c.count()
	}
}

func (c controller) apply(asked request) error {
	for _, l := range c.links {
		if l.config.Name == asked.link {
			return l.do(func(now int64) { l.apply(now, asked) })
		}
	}
	names := make([]string, len(c.links))
	for i, l := range c.links {
		names[i] = l.config.Name
	}
	return fieldErrorf("link", "there is no link %q; there are %s", asked.link, strings.Join(names, ", "))
}

func (c controller) state() (any, error) {
	links := map[string]linkState{}
	for _, l := range c.links {
		var state linkState
		if err := l.do(func(int64) { state = l.state() }); err != nil {
			return nil, err
		}
		links[l.config.Name] = state
	}
	return map[string]any{"links": links}, nil
}

func (c controller) count() (any, error) {
	links := map[string]linkCounters{}
	for _, l := range c.links {
		var counters linkCounters
		if err := l.do(func(now int64) { counters = l.count(now) }); err != nil {
			return nil, err
		}
		links[l.config.Name] = counters
	}
	return map[string]any{"links": links}, nil
}
