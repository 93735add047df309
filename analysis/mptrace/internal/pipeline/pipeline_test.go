package pipeline

import (
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

type block struct{ number, sum int }

// counter fills blocks with the numbers from 1 to last.
func counter(last int) func(*block) bool {
	n := 0
	return func(b *block) bool {
		if n == last {
			return false
		}
		n++
		b.number, b.sum = n, 0
		return true
	}
}

// TestOrder: for any number of goroutines, each stage sees all blocks in order,
// one at a time, and after the previous stage.
func TestOrder(t *testing.T) {
	for goroutines := range 6 {
		const last = 5000
		var before [2]int
		stage := func(i int) func(*block) bool {
			var busy atomic.Bool
			return func(b *block) bool {
				if !busy.CompareAndSwap(false, true) {
					t.Error("two blocks at a stage")
				}
				if b.number != before[i]+1 || b.sum != i*b.number {
					t.Errorf("%d goroutines: stage %d: %+v after %d", goroutines, i, *b, before[i])
				}
				before[i] = b.number
				b.sum += b.number
				if b.number%7 == 0 {
					runtime.Gosched()
				}
				busy.Store(false)
				return true
			}
		}
		Run(goroutines, counter(last), stage(0), stage(1))
		if before != [2]int{last, last} {
			t.Errorf("%d goroutines: %d", goroutines, before)
		}
	}
}

// TestGoroutinesWorkTogether: the first block waits in its last stage until the
// second block reaches the stage before.
func TestGoroutinesWorkTogether(t *testing.T) {
	met := make(chan bool)
	Run(2, counter(2),
		func(b *block) bool {
			if b.number == 2 {
				met <- true
			}
			return true
		},
		func(b *block) bool {
			if b.number == 1 {
				<-met
			}
			return true
		})
}

// TestStop: after a stage has returned false, no block reaches it or a later
// stage.
func TestStop(t *testing.T) {
	for goroutines := 1; goroutines <= 4; goroutines++ {
		last, through := 0, 0
		Run(goroutines, counter(1000),
			func(b *block) bool { last = b.number; return b.number < 50 },
			func(*block) bool { through++; return true })
		if last != 50 || through > 49 || goroutines == 1 && through != 49 {
			t.Errorf("%d goroutines: block %d came to the stage, %d went on", goroutines, last, through)
		}
	}
}

// TestPanic: a panic in any stage is reported, in another goroutine with its
// location.
func TestPanic(t *testing.T) {
	for goroutines := 1; goroutines <= 4; goroutines++ {
		for broken := range 3 {
			stage := func(at int) func(*block) bool {
				return func(b *block) bool {
					if at == broken && b.number == 20 {
						breakHere()
					}
					if at > broken && b.number >= 20 {
						t.Error("a stage went on")
					}
					return true
				}
			}
			fill, first := counter(1000), stage(0)
			said := caught(func() {
				Run(goroutines, func(b *block) bool { return fill(b) && first(b) }, stage(1), stage(2))
			})
			if goroutines > 1 && !strings.Contains(said, "breakHere") || !strings.HasPrefix(said, "it broke") {
				t.Errorf("%d goroutines, stage %d: %q", goroutines, broken, said)
			}
		}
	}
}

func breakHere() { panic("it broke") }

func caught(f func()) (text string) {
	defer func() { text, _ = recover().(string) }()
	f()
	return ""
}
