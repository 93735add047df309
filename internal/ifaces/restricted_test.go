package ifaces

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// forbidBind makes bind(2) fail with EACCES in all threads from now on, as
// Android's policy does for netlink sockets of applications.
func forbidBind() error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // system call number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_BIND, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}

// beRestricted watches wlan0 without the permission to bind, and prints the
// events until its standard input ends.
func beRestricted() int {
	if err := forbidBind(); err != nil {
		fmt.Println("seccomp:", err)
		return 1
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	set, err := Watch(ctx, []string{"wlan0"})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	fmt.Println("polling:", set.Polling())
	last := []Interface(nil)
	for {
		now := set.Snapshot()
		fmt.Println(describe(Diff(last, now)))
		last = now
		select {
		case <-set.Changed():
		case <-set.Done():
			return 0
		}
	}
}
