package emulator

import (
	"net/netip"
	"strings"

	"mplab/internal/strictjson"
	"mplab/linkem/internal/config"
	"mplab/linkem/model"
)

// controller answers the requests of the control socket.
type controller struct{ links []*link }

// LinkState is the answer to "state", for one link.
type LinkState struct {
	A             string                   `json:"a"`
	B             string                   `json:"b"`
	Seed          uint64                   `json:"seed"`
	Up            model.Params             `json:"up"`
	Down          model.Params             `json:"down"`
	DelayByPrefix map[netip.Prefix]float64 `json:"delay_by_prefix,omitempty"`
	Scheduling    string                   `json:"scheduling"`
}

// LinkCounters is the answer to "counters", for one link.
type LinkCounters struct {
	Up   model.Counters `json:"up"`
	Down model.Counters `json:"down"`
}

// answer is a control.Handler.
func (c controller) answer(line []byte) (any, error) {
	asked, err := config.ParseRequest(line)
	if err != nil {
		return nil, err
	}
	switch asked.Op {
	case "apply":
		return nil, c.apply(asked)
	case "state":
		return c.state()
	default:
		return c.count()
	}
}

func (c controller) apply(asked config.Request) error {
	for _, l := range c.links {
		if l.config.Name == asked.Link {
			return l.do(func(now int64) { l.apply(now, asked) })
		}
	}
	names := make([]string, len(c.links))
	for i, l := range c.links {
		names[i] = l.config.Name
	}
	return strictjson.Errorf("link", "there is no link %q; there are %s", asked.Link, strings.Join(names, ", "))
}

func (c controller) state() (any, error) {
	links := map[string]LinkState{}
	for _, l := range c.links {
		var state LinkState
		if err := l.do(func(int64) { state = l.state() }); err != nil {
			return nil, err
		}
		links[l.config.Name] = state
	}
	return map[string]any{"links": links}, nil
}

func (c controller) count() (any, error) {
	links := map[string]LinkCounters{}
	for _, l := range c.links {
		var counters LinkCounters
		if err := l.do(func(now int64) { counters = l.count(now) }); err != nil {
			return nil, err
		}
		links[l.config.Name] = counters
	}
	return map[string]any{"links": links}, nil
}
