package policy

import (
	"sync"
	"sync/atomic"
)

// Engine decides by a rule file that can be reloaded during use. It is safe for
// concurrent use.
type Engine struct {
	file    string
	options Options
	current atomic.Pointer[Policy]
	reload  sync.Mutex // held while the file is read
}

// Open reads a rule file and returns an engine for it.
func Open(file string, options Options) (*Engine, error) {
	e := &Engine{file: file, options: options}
	if err := e.Reload(); err != nil {
		return nil, err
	}
	return e, nil
}

// Reload reads the file again. Later decisions use the new rules. Earlier decisions and
// the meaning of their labels do not change. If the file has an error, the old rules
// stay and the error is returned.
func (e *Engine) Reload() error {
	e.reload.Lock()
	defer e.reload.Unlock()
	data, err := readFile(e.file)
	if err != nil {
		return err
	}
	var previous *Table
	if old := e.current.Load(); old != nil {
		previous = old.table
	}
	p, err := parse(e.file, data, e.options, previous)
	if err != nil {
		return err
	}
	e.current.Store(p)
	return nil
}

// Policy returns the current rules.
func (e *Engine) Policy() *Policy { return e.current.Load() }

// Decide returns the first current rule whose conditions all hold, or the default. It
// does not allocate.
func (e *Engine) Decide(f *Flow, c *Conditions) Decision { return e.current.Load().Decide(f, c) }

// Explain reports for each current rule whether it matches.
func (e *Engine) Explain(f *Flow, c *Conditions) Explanation { return e.current.Load().Explain(f, c) }
