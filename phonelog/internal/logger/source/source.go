package source

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"mplab/phonelog/internal/logger/record"
)

// Source reads one kind of state.
type Source interface {
	// Read returns the current states and where they come from. Unknown values
	// are absent; an error means that nothing is known.
	Read(ctx context.Context) (states []record.State, from string, err error)
}

// way is one of several ways to read a state.
type way struct {
	name string
	read func(ctx context.Context) ([]record.State, error)
}

// errPartly means that a way works but has no data; a later way may have some.
var errPartly = errors.New("nothing is there")

// first uses the first way that works, starting with the last successful one.
type first struct {
	ways []way
	last int
}

// Read implements Source.
func (f *first) Read(ctx context.Context) ([]record.State, string, error) {
	var problems []error
	var partly []record.State
	from := ""
	for i := range f.ways {
		at := (f.last + i) % len(f.ways)
		w := f.ways[at]
		states, err := w.read(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, "", ctx.Err()
		case err == nil:
			f.last = at
			return states, w.name, nil
		case errors.Is(err, errPartly):
			if partly == nil {
				partly, from = states, w.name
			}
		default:
			problems = append(problems, fmt.Errorf("%s: %w", w.name, err))
		}
	}
	f.last = 0
	if partly != nil {
		return partly, from, nil
	}
	return nil, "", join(problems)
}

// join returns several errors in one line.
func join(problems []error) error {
	all := errors.Join(problems...)
	if len(problems) < 2 {
		return all
	}
	return errors.New(strings.ReplaceAll(all.Error(), "\n", "; "))
}
