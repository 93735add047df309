// Package relay carries blocks of work through stages with several goroutines.
//
// A goroutine takes a block through all its stages before it begins another
// one, so that a block stays in the cache of one processor, and nobody waits
// while there is a stage that nobody works at. Each stage takes one block at a
// time, in the order in which they were filled: what belongs to a stage needs
// no other lock, and the outcome does not depend on the number of goroutines.
package relay

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
	r := &relay[B]{fill: fill, stages: stages, locks: make([]sync.Mutex, len(stages)+1)}
	var others sync.WaitGroup
	for range runners - 1 {
		others.Go(r.run)
	}
	r.run()
	others.Wait()
	if r.failure != "" {
		panic(r.failure)
	}
}

type relay[B any] struct {
	fill   func(*B) bool
	stages []func(*B) bool
	locks  []sync.Mutex // of fill, and of each stage
	over   bool         // fill has returned false

	broken  atomic.Bool // no stage is to be begun
	once    sync.Once
	failure string
}

func (r *relay[B]) run() {
	var b B
	for r.carry(&b) {
	}
}

// carry fills a block and takes it through the stages. The lock of a stage is
// kept until that of the next one is held, so no block overtakes another.
func (r *relay[B]) carry(b *B) bool {
	at := 0
	await(&r.locks[0])
	defer func() {
		if failure := recover(); failure != nil {
			r.fail(failure)
		}
		r.locks[at].Unlock()
	}()
	if r.over || r.broken.Load() || !r.fill(b) {
		r.over = true
		return false
	}
	for _, stage := range r.stages {
		await(&r.locks[at+1])
		r.locks[at].Unlock()
		at++
		if r.broken.Load() || !stage(b) {
			r.broken.Store(true)
			return false
		}
	}
	return true
}

// fail keeps the first panic.
func (r *relay[B]) fail(failure any) {
	r.broken.Store(true)
	r.once.Do(func() { r.failure = fmt.Sprintf("%v\n\n%s", failure, debug.Stack()) })
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
