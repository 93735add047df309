package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// memoryLimit is what the program tries to stay within: beyond it garbage is
// collected as often as it takes. What it needs at a time is bounded elsewhere.
const memoryLimit = 112 << 20

// keepPace sets the limit, and moves it after each collection that left nearly
// as much in use: else the program would do little but collect.
func keepPace() {
	debug.SetMemoryLimit(memoryLimit)
	afterCollections(func() { debug.SetMemoryLimit(limitFor(inUse())) })
}

// limitFor is the limit when so many bytes are in use: a quarter as much may be
// garbage, and 16 MB are for what is not counted as in use.
func limitFor(bytes int64) int64 { return max(memoryLimit, bytes+bytes/4+16<<20) }

// inUse is how many bytes of the heap the last collection left.
func inUse() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// afterCollections calls a function after every collection, as something that
// nobody needs is found by it.
func afterCollections(call func()) {
	type garbage struct{ _ *garbage } // with a pointer, else it may share memory with others
	runtime.AddCleanup(new(garbage), func(call func()) {
		call()
		afterCollections(call)
	}, call)
}
