package session

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// FuzzIncoming: for any sequence of pieces, the ready bytes are the stream, each byte
// once, and the memory is counted right. A piece is four bytes: its offset, its size,
// and how many ready bytes are taken before it arrives.
func FuzzIncoming(f *testing.F) {
	f.Add([]byte{0, 0, 10, 0, 0, 10, 5, 3})
	f.Add([]byte{0, 5, 10, 0, 0, 0, 7, 0, 0, 12, 9, 4})
	f.Add([]byte{0, 2, 1, 0, 0, 3, 1, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 4, 1, 9})
	f.Fuzz(func(t *testing.T, script []byte) {
		var in incoming
		defer func() { in.clear() }()
		at := func(offset uint64) byte { return byte(offset*7 + offset>>8) }
		taken, end := uint64(0), map[uint64]bool{}
		for ; len(script) >= 4; script = script[4:] {
			for n := int(script[3]); n > 0 && len(in.ready) > 0; n-- {
				first := &in.ready[0]
				if first.lo != taken || first.data[0] != at(taken) {
					t.Fatalf("byte %d is %d of a piece at %d", taken, first.data[0], first.lo)
				}
				taken++
				in.waiting--
				first.lo++
				if first.data = first.data[1:]; len(first.data) == 0 {
					in.memory -= first.cost()
					first.held.free()
					in.ready = in.ready[1:]
				}
			}
			lo, size := uint64(script[0])<<8|uint64(script[1]), int(script[2])*int(script[2])
			if size == 0 {
				continue
			}
			held := newBuffer(size)
			for i := range size {
				held.b[i] = at(lo + uint64(i))
				end[lo+uint64(i)] = true
			}
			if !in.add(piece{lo, held.b[:size], held}) {
				held.free()
			}
			compare(t, &in, taken, end)
		}
	})
}

// compare compares the stored bytes with those that arrived.
func compare(t *testing.T, in *incoming, taken uint64, came map[uint64]bool) {
	t.Helper()
	next, waiting, memory, behind := taken, 0, 0, 0
	for _, p := range in.ready {
		if p.lo != next {
			t.Fatalf("a piece at %d, where %d is next", p.lo, next)
		}
		next = p.hi()
		waiting, memory = waiting+len(p.data), memory+p.cost()
	}
	last, n := in.next, 0
	for _, p := range slices.Concat(in.later.chunks...) {
		if p.lo <= last {
			t.Fatalf("a later piece at %d, behind %d", p.lo, last)
		}
		last = p.lo
		n++
		waiting, memory, behind = waiting+len(p.data), memory+p.cost(), behind+len(p.data)
	}
	if n != in.later.n {
		t.Fatalf("%d pieces are behind a gap, counted as %d", n, in.later.n)
	}
	if behind != in.behind {
		t.Fatalf("%d bytes are behind a gap, counted as %d", behind, in.behind)
	}
	if next != in.next || waiting != in.waiting || memory != in.memory {
		t.Fatalf("next %d, %d bytes in %d, counted as %d, %d in %d", next, waiting, memory, in.next, in.waiting, in.memory)
	}
	if came[in.next] || in.next > 0 && !came[in.next-1] {
		t.Fatalf("next is %d", in.next)
	}
}

// TestWaitForTheOrder checks that a byte waits from its arrival until all bytes before
// it have arrived: here 20 bytes wait for 6 ms, and 10 of them for 4 ms more, because a
// second gap is before them.
func TestWaitForTheOrder(t *testing.T) {
	var in incoming
	defer func() { in.clear() }()
	come := func(ms int64, lo uint64, size int) {
		t.Helper()
		held := newBuffer(size)
		in.account(ms * 1e6)
		if !in.add(piece{lo, held.b[:size], held}) {
			t.Fatalf("the bytes at %d are not new", lo)
		}
	}
	come(100, 0, 10)
	if in.waitedMS() != 0 {
		t.Fatalf("%g ms without a gap", in.waitedMS())
	}
	come(110, 20, 10)
	come(110, 40, 10)
	come(116, 10, 10)
	come(120, 30, 10)
	come(200, 50, 10)
	if want := (20*6.0 + 10*4) / 60; in.waitedMS() != want {
		t.Fatalf("%g ms, want %g", in.waitedMS(), want)
	}
}

// fillBackwards adds n one-byte pieces with a gap before each, the last one first. It
// returns the duration.
func fillBackwards(n int) time.Duration {
	var in incoming
	defer in.clear()
	begun := time.Now()
	for i := n; i > 0; i-- {
		held := newBuffer(1)
		in.add(piece{uint64(2 * i), held.b[:1], held})
	}
	return time.Since(begun)
}

// TestManyGaps: the time per piece does not grow with the number of gaps before it.
func TestManyGaps(t *testing.T) {
	const n, times = 4000, 32
	fillBackwards(n * times) // allocates the buffers
	few, many := time.Duration(0), fillBackwards(n*times)
	for range times {
		few += fillBackwards(n)
	}
	if many > 8*few {
		t.Errorf("%d pieces behind gaps take %v, %d times %d pieces %v", n*times, many, times, n, few)
	}
}

// TestPiecesInAnyOrder: many pieces in any order, some of them twice, make the stream.
func TestPiecesInAnyOrder(t *testing.T) {
	const n = 5 * chunk
	random := rand.New(rand.NewPCG(1, 2))
	order := append(random.Perm(n), random.Perm(n)...)
	order = append(order[slices.Index(order, 0)+1:], order[:slices.Index(order, 0)+1]...) // the first piece arrives late
	var in incoming
	defer func() { in.clear() }()
	came := map[uint64]bool{}
	for _, i := range order {
		held := newBuffer(600) // too large to be joined
		lo := uint64(600 * i)
		for b := range uint64(600) {
			held.b[b], came[lo+b] = byte((lo+b)*7+(lo+b)>>8), true
		}
		if !in.add(piece{lo, held.b[:600], held}) {
			held.free()
		}
		if i%50 == 0 {
			compare(t, &in, 0, came)
		}
	}
	compare(t, &in, 0, came)
	if in.next != 600*n || in.later.n != 0 {
		t.Errorf("%d bytes came in order, %d pieces are left", in.next, in.later.n)
	}
}
