package mptrace

import (
	"errors"

	"mplab/analysis/mptrace/internal/filter"
	"mplab/analysis/mptrace/tables"
)

// ErrFlows means that a filter names connections with too many subflows.
var ErrFlows = errors.New("the connections of the filter have more than 100,000 subflows")

// selectFlows reads the captures without output and returns the flows of the
// connections that the filter names; nil: it names none.
func selectFlows(names []string, o Options) (*filter.Flows, error) {
	if o.Filter == nil || !o.Filter.Named() {
		return nil, nil
	}
	flows, tooMany := &filter.Flows{}, false
	first := Options{Threads: o.Threads, Samples: 1, Source: o.Source, Loopback: o.Loopback, Filter: o.Filter}
	first.ended = func(c *tables.Connection, subflows []tables.Subflow) {
		for i := range subflows {
			if o.Filter.Connection(c) && !flows.Add(&subflows[i]) {
				tooMany = true
			}
		}
	}
	if _, err := analyse(names, first, nil); err != nil {
		return nil, err
	}
	if tooMany {
		return nil, ErrFlows
	}
	return flows, nil
}
