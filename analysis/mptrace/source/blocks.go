package source

import (
	"fmt"
	"iter"
	"runtime/debug"

	"mplab/analysis/mptrace/packet"
)

const (
	// ring is how many blocks there are when decoding runs ahead.
	ring = 16
	// handBack is how many of them are given back at a time: a goroutine that
	// waits is woken seldom, and then has enough to do.
	handBack = ring / 2
)

// Blocks returns all packets, block by block; each is valid until the next one
// is asked for. With two threads or more, reading and decoding run ahead in a
// goroutine of their own: the packets are the same. When the consumer stops
// early that goroutine has ended before the loop is left, which takes as long
// as the read that it is in. A panic there becomes one of the consumer.
//
// With threads, only Interface may be called from inside the loop.
func (s *Source) Blocks(threads int) iter.Seq[[]packet.Packet] {
	return func(yield func([]packet.Packet) bool) {
		if threads > 1 {
			s.ahead(yield)
			return
		}
		var b Block
		defer s.release(&b)
		for s.Next(&b) {
			if !yield(b.Packets) {
				return
			}
		}
	}
}

func (s *Source) ahead(yield func([]packet.Packet) bool) {
	empty, full, quit := make(chan *Block, ring), make(chan *Block, ring), make(chan struct{})
	for range ring {
		empty <- new(Block)
	}
	var failure any
	go func() {
		defer close(full)
		defer func() {
			if r := recover(); r != nil {
				failure = fmt.Sprintf("%v\n\n%s", r, debug.Stack())
			}
		}()
		s.produce(empty, full, quit)
	}()
	defer func() {
		close(quit)
		for range full { // until the goroutine has ended
		}
		if failure != nil {
			panic(failure)
		}
	}()
	var spent []*Block
	for b := range full {
		if !yield(b.Packets) {
			return
		}
		if spent = append(spent, b); len(spent) == handBack {
			for _, b := range spent {
				empty <- b
			}
			spent = spent[:0]
		}
	}
}

func (s *Source) produce(empty <-chan *Block, full chan<- *Block, quit <-chan struct{}) {
	for {
		select {
		case <-quit:
			return
		case b := <-empty:
			if !s.Next(b) {
				return
			}
			full <- b
		}
	}
}
