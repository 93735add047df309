package pipeline

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Run fills blocks and passes each through the stages. When fill returns false,
// there are no more blocks; Run returns when all blocks have passed. When a
// stage returns false, no further stage starts. With one runner, the caller's
// goroutine does all work; with n runners, n blocks are in use concurrently. If
// a runner panics, Run panics in the caller's goroutine after the other runners
// have stopped.
func Run[B any](runners int, fill func(*B) bool, stages ...func(*B) bool) {
	p := &pipeline[B]{fill: fill, stages: stages, locks: make([]sync.Mutex, len(stages)+1)}
	var others sync.WaitGroup
	for range runners - 1 {
		others.Go(p.run)
	}
	p.run()
	others.Wait()
	if p.failure != "" {
		panic(p.failure)
	}
}

type pipeline[B any] struct {
	fill   func(*B) bool
	stages []func(*B) bool
	locks  []sync.Mutex // of fill, then of each stage
	over   bool         // fill has returned false

	broken  atomic.Bool // start no further stage
	once    sync.Once
	failure string
}

func (p *pipeline[B]) run() {
	var b B
	for p.carry(&b) {
	}
}

// carry fills a block and passes it through the stages. It holds the lock of a
// stage until it has that of the next one, so that no block overtakes another.
func (p *pipeline[B]) carry(b *B) bool {
	at := 0
	await(&p.locks[0])
	defer func() {
		if failure := recover(); failure != nil {
			p.fail(failure)
		}
		p.locks[at].Unlock()
	}()
	if p.over || p.broken.Load() || !p.fill(b) {
		p.over = true
		return false
	}
	for _, stage := range p.stages {
		await(&p.locks[at+1])
		p.locks[at].Unlock()
		at++
		if p.broken.Load() || !stage(b) {
			p.broken.Store(true)
			return false
		}
	}
	return true
}

// fail keeps the first panic.
func (p *pipeline[B]) fail(failure any) {
	p.broken.Store(true)
	p.once.Do(func() { p.failure = fmt.Sprintf("%v\n\n%s", failure, debug.Stack()) })
}

// patience is the number of attempts to take a lock before sleeping.
const patience = 1000

// await takes a lock. It spins first, because most waits are shorter than a
// wake-up.
func await(l *sync.Mutex) {
	for range patience {
		if l.TryLock() {
			return
		}
		runtime.Gosched()
	}
	l.Lock()
}
