package policy

import (
	"sync"
	"sync/atomic"
)

// Engine decides by a rule file that can be read again while it is in use. It
// is safe for concurrent use.
type Engine struct {
	file    string
	options Options
	current atomic.Pointer[Policy]
	reload  sync.Mutex // held while the file is read
}

// Open reads a rule file and returns an engine that decides by it.
func Open(file string, options Options) (*Engine, error) {
	e := &Engine{file: file, options: options}
	if err := e.Reload(); err != nil {
		return nil, err
	}
	return e, nil
}

// Reload reads the file again. From then on decisions are by the new rules;
// those made before stay as they are, and their labels go on to mean what they
// did. When the file is bad the old rules stay in force and the error says why.
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

// Policy returns the rules in force.
func (e *Engine) Policy() *Policy { return e.current.Load() }

// Decide returns the first rule in force of which all conditions hold, or the
// default. It does not allocate.
func (e *Engine) Decide(f *Flow, c *Conditions) Decision { return e.current.Load().Decide(f, c) }

// Explain says for each rule in force whether it matches.
func (e *Engine) Explain(f *Flow, c *Conditions) Explanation { return e.current.Load().Explain(f, c) }
