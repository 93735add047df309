package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// memoryLimit is the soft memory limit of the Go runtime: above it the garbage
// collector runs as often as necessary. The live data is bounded elsewhere.
const memoryLimit = 112 << 20

// garbagePercent is the garbage, relative to the live heap, that starts a
// collection. It saves a fifth of the memory and costs 3 % of the time, compared
// with the default of 100.
const garbagePercent = 50

// keepPace sets the limit and adapts it to the live heap after each collection.
// Otherwise a program with a large live heap would spend most of its time
// collecting.
func keepPace() {
	debug.SetGCPercent(garbagePercent)
	debug.SetMemoryLimit(memoryLimit)
	afterCollections(func() { debug.SetMemoryLimit(limitFor(inUse())) })
}

// limitFor returns the limit for a live heap of the given size: 25 % for
// garbage and 16 MiB for memory outside the live heap.
func limitFor(bytes int64) int64 { return max(memoryLimit, bytes+bytes/4+16<<20) }

// inUse returns the number of heap bytes that the last collection left.
func inUse() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// afterCollections calls a function after every garbage collection: it
// allocates an unreachable object and is called back when the collector finds
// it.
func afterCollections(call func()) {
	type garbage struct{ _ *garbage } // with a pointer: the tiny allocator would combine it with other objects
	runtime.AddCleanup(new(garbage), func(call func()) {
		call()
		afterCollections(call)
	}, call)
}
