package rig

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// punctual is the nice value of the benchmark's processes on shaped links. They need little of the processor there, but
// at once: on a busy machine times would measure what else runs.
const punctual = -15

// prioritise sets the nice value of this process, which programs started from now on inherit: raised on shaped links,
// as far as the system permits, and that of an ordinary process where the processor is what is measured.
func prioritise(shaped bool) {
	nice := 0
	if shaped {
		nice = punctual
	}
	threads, _ := os.ReadDir("/proc/self/task") // each has a value of its own; new ones inherit it
	for _, thread := range threads {
		if id, err := strconv.Atoi(thread.Name()); err == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, id, nice)
		}
	}
	// Between sessions it is the value of the session that counts (sched(7), autogroup).
	_ = os.WriteFile("/proc/self/autogroup", []byte(strconv.Itoa(nice)), 0)
}

// Nice is the nice value of this process.
func Nice() int {
	// The system call gives 20 - nice, as a negative number would be an error.
	got, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return 0
	}
	return 20 - got
}
