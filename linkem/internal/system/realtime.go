package system

import (
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

const (
	nicest        = -15
	memoryLimit   = 1 << 30
	garbageFactor = 800 // GOGC: the fast path does not allocate, so collections are rare and can be late
	spareThreads  = 8   // GOMAXPROCS: a thread that returns from the kernel gets a free processor slot immediately
)

// TuneRuntime configures the Go runtime for few and short interruptions.
func TuneRuntime() {
	debug.SetGCPercent(garbageFactor)
	debug.SetMemoryLimit(memoryLimit)
	runtime.GOMAXPROCS(max(spareThreads, runtime.NumCPU()))
}

// TuneThread makes the calling, locked thread as punctual as the system permits. It returns "fifo" (SCHED_FIFO with the
// given priority), "nice" (a raised ordinary priority) or "ordinary".
func TuneThread(priority uint32) string {
	// Timers of ordinary threads may be 50 µs late by default (prctl(2), PR_SET_TIMERSLACK).
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	attr := unix.SchedAttr{
		Size:     unix.SizeofSchedAttr,
		Policy:   unix.SCHED_FIFO,
		Flags:    unix.SCHED_FLAG_RESET_ON_FORK,
		Priority: priority,
	}
	if unix.SchedSetAttr(0, &attr, 0) == nil {
		return "fifo"
	}
	if unix.Setpriority(unix.PRIO_PROCESS, 0, nicest) == nil {
		return "nice"
	}
	return "ordinary"
}
