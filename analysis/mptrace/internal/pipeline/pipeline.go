package pipeline

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// depth is the number of blocks in use for each goroutine.
const depth = 2

// Run fills blocks and passes each through the stages. When fill returns false,
// there are no more blocks; Run returns when all blocks have passed. When a
// stage returns false, no further stage starts. With less than two goroutines,
// the caller's does all work. If fill or a stage panics, Run panics in the
// caller's goroutine after the others have stopped.
func Run[B any](goroutines int, fill func(*B) bool, stages ...func(*B) bool) {
	first, others := divide(goroutines, stages)
	if len(others) == 0 {
		for b := new(B); fill(b) && pass(first, b); {
		}
		return
	}
	p := &pipeline[B]{}
	free := make(chan *B, depth*(1+len(others)))
	for range cap(free) {
		free <- new(B)
	}
	begun := make(chan *B, cap(free))
	p.goroutines.Go(func() { p.begin(fill, first, free, begun) })
	done := begun
	for _, stage := range others {
		in, out := done, make(chan *B, cap(free))
		p.goroutines.Go(func() { p.work(stage, in, out) })
		done = out
	}
	for b := range done {
		free <- b
	}
	close(free)
	p.goroutines.Wait()
	if p.failure != "" {
		panic(p.failure)
	}
}

// divide returns the stages of the goroutine that fills blocks, and the stages
// that each get another goroutine.
func divide[S any](goroutines int, stages []S) (first, others []S) {
	at := max(0, len(stages)-max(0, goroutines-1))
	return stages[:at], stages[at:]
}

// pass passes a block through stages. It returns false if a stage did.
func pass[B any](stages []func(*B) bool, b *B) bool {
	for _, stage := range stages {
		if !stage(b) {
			return false
		}
	}
	return true
}

type pipeline[B any] struct {
	goroutines sync.WaitGroup
	broken     atomic.Bool // start no further stage
	once       sync.Once
	failure    string
}

// begin fills free blocks and passes them through the first stages.
func (p *pipeline[B]) begin(fill func(*B) bool, stages []func(*B) bool, free <-chan *B, out chan<- *B) {
	defer close(out)
	defer p.catch()
	for b := range free {
		if p.broken.Load() || !fill(b) {
			return
		}
		if !pass(stages, b) {
			p.broken.Store(true)
			return
		}
		out <- b
	}
}

// work passes blocks through a stage, until the pipeline is broken.
func (p *pipeline[B]) work(stage func(*B) bool, in <-chan *B, out chan<- *B) {
	defer close(out)
	defer p.catch()
	for b := range in {
		if p.broken.Load() {
			return
		}
		if !stage(b) {
			p.broken.Store(true)
			return
		}
		out <- b
	}
}

// catch ends a panic and keeps the first one.
func (p *pipeline[B]) catch() {
	if failure := recover(); failure != nil {
		p.broken.Store(true)
		p.once.Do(func() { p.failure = fmt.Sprintf("%v\n\n%s", failure, debug.Stack()) })
	}
}
