package rig

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// punctual is the nice value of the benchmark's processes on shaped links. They need little CPU time there, but without
// delay: on a busy machine, measured times would otherwise depend on other processes.
const punctual = -15

// prioritise sets the nice value of this process, which later child processes inherit. On shaped links it raises the
// priority as far as the system permits; on unshaped ones, which measure CPU time, it sets that of an ordinary process.
func prioritise(shaped bool) {
	nice := 0
	if shaped {
		nice = punctual
	}
	threads, _ := os.ReadDir("/proc/self/task") // each thread has a nice value; new ones inherit it
	for _, thread := range threads {
		if id, err := strconv.Atoi(thread.Name()); err == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, id, nice)
		}
	}
	// Between sessions, the nice value of the session applies (sched(7), autogroup).
	_ = os.WriteFile("/proc/self/autogroup", []byte(strconv.Itoa(nice)), 0)
}

// Nice returns the nice value of this process.
func Nice() int {
	// The system call returns 20 - nice, because a negative number would be an error.
	got, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return 0
	}
	return 20 - got
}
