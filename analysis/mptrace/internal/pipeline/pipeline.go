package pipeline

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Run fills blocks and takes each through the stages. When fill returns false
// there are no more, and Run returns when all are through. When a stage returns
// false, no stage is begun any more. With one runner all is done by the
// caller's goroutine; with n of them n blocks are in use at once. A panic of
// any of them becomes one of the caller, when the others have stopped.
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
	locks  []sync.Mutex // of fill, and of each stage
	over   bool         // fill has returned false

	broken  atomic.Bool // no stage is to be begun
	once    sync.Once
	failure string
}

func (p *pipeline[B]) run() {
	var b B
	for p.carry(&b) {
	}
}

// carry fills a block and takes it through the stages. The lock of a stage is
// kept until that of the next one is held, so no block overtakes another.
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

// patience is how often a lock is tried before its taker goes to sleep.
const patience = 1000

// await takes a lock. Most waits are shorter than it takes to be woken.
func await(l *sync.Mutex) {
	for range patience {
		if l.TryLock() {
			return
		}
		runtime.Gosched()
	}
	l.Lock()
}
