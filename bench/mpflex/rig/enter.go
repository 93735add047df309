package rig

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	insideVariable = "MPFLEX_BENCH_INSIDE"
	scratch        = "/run" // a separate file system inside
	probeOnly      = "probe"
)

// programs that the rig needs.
var programs = []string{"ip", "nft"}

// Inside reports whether this process is the one in the private namespaces, and sets it up. A main function must call
// it before anything except role.Play.
func Inside() (bool, error) {
	value := os.Getenv(insideVariable)
	if value == "" {
		return false, nil
	}
	if err := enter(); err != nil {
		return true, fmt.Errorf("private namespaces: %w", err)
	}
	if value == probeOnly {
		os.Exit(0)
	}
	return true, nil
}

func enter() error {
	// Kill this process when the outer one ends. The Pdeathsig attribute of package syscall is not enough, because it
	// is cleared on the way.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return err
	}
	// The scheduler treats a separate session as a unit (sched(7), autogroup), so that its priority is effective on a
	// busy machine.
	if _, err := unix.Setsid(); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := unix.Mount("tmpfs", scratch, "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("mount %s: %w", scratch, err)
	}
	return exec.Command("ip", "link", "set", "lo", "up").Run()
}

// Enter runs this program again, with its arguments, in private namespaces, and returns its exit code.
func Enter() (int, error) {
	return run("1", os.Args[1:])
}

// Unavailable returns the reason why this machine cannot run a rig, or nil.
func Unavailable() error {
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%s is not installed", program)
		}
	}
	code, err := run(probeOnly, nil)
	if err == nil && code != 0 {
		err = errors.New("the private namespaces cannot be set up")
	}
	if err != nil {
		return fmt.Errorf("private namespaces are not permitted: %w", err)
	}
	return nil
}

func run(value string, args []string) (int, error) {
	runtime.LockOSThread() // the end of this thread is the death signal of the inner process
	defer runtime.UnlockOSThread()
	command := exec.Command("/proc/self/exe", args...)
	command.Args[0] = os.Args[0]
	command.Env = append(os.Environ(), insideVariable+"="+value)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID}
	if os.Getuid() != 0 {
		command.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		command.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		command.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	if err := command.Start(); err != nil {
		return 0, err
	}
	stop := forward(command.Process)
	defer stop()
	err := command.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil // a signal is a failure, too
	}
	return 0, err
}

// forward forwards termination signals to the inner process, which ends in order; then this process ends.
func forward(process *os.Process) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT)
	go func() {
		for s := range signals {
			_ = process.Signal(s)
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
	}
}
