package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// memoryLimit is what the program tries to stay within: beyond it garbage is
// collected as often as it takes. What it needs at a time is bounded elsewhere.
const memoryLimit = 112 << 20

// keepPace sets the limit, and moves it where so much is in use that nearly
// all time would be spent on collecting: half as much again may be garbage.
func keepPace() {
	debug.SetMemoryLimit(memoryLimit)
	afterCollection(func() { debug.SetMemoryLimit(limitFor(inUse())) })
}

// limitFor is the limit when so many bytes are in use.
func limitFor(bytes int64) int64 { return max(memoryLimit, bytes+bytes/4+16<<20) }

// inUse is how many bytes the last collection left.
func inUse() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// afterCollection calls a function after each collection of garbage, when
// something that nobody needs was found.
func afterCollection(call func()) {
	garbage := new([16]byte)
	runtime.AddCleanup(garbage, func(call func()) {
		call()
		afterCollection(call)
	}, call)
}
