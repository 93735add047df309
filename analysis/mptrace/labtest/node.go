package labtest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Node is a network namespace.
type Node struct {
	namespace *os.File
}

func newNode() (*Node, error) {
	n := new(Node)
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			made <- fmt.Errorf("make a network namespace: %w", err)
			return
		}
		var err error
		n.namespace, err = os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
		made <- err
	}()
	if err := <-made; err != nil {
		return nil, err
	}
	return n, n.IP("link set lo up")
}

// Do runs f on a thread in the namespace. Sockets that f opens stay in the
// namespace.
func (n *Node) Do(f func()) {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, because the thread is in another namespace
		err := unix.Setns(int(n.namespace.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			f()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		panic(fmt.Sprintf("enter a network namespace: %v", err)) // the descriptor is open and belongs to this process
	}
}

// Run runs a command in the namespace and waits for its end.
func (n *Node) Run(name string, args ...string) error {
	var output []byte
	var err error
	n.Do(func() { output, err = exec.Command(name, args...).CombinedOutput() })
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, output)
	}
	return nil
}

// IP runs `ip` once per line, with the line as its arguments.
func (n *Node) IP(lines ...string) error {
	for _, line := range lines {
		if err := n.Run("ip", strings.Fields(line)...); err != nil {
			return err
		}
	}
	return nil
}

// Set writes a sysctl in the namespace, such as net.mptcp.checksum_enabled.
func (n *Node) Set(name, value string) error {
	var err error
	n.Do(func() { err = os.WriteFile("/proc/sys/"+strings.ReplaceAll(name, ".", "/"), []byte(value), 0o644) })
	return err
}

// Counter reads a TCP counter of the namespace, such as EstabResets
// (TcpEstabResets in nstat).
func (n *Node) Counter(name string) (int64, error) {
	var text []byte
	var err error
	n.Do(func() { text, err = os.ReadFile("/proc/thread-self/net/snmp") })
	if err != nil {
		return 0, err
	}
	const prefix = "Tcp:"
	var names []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || fields[0] != prefix:
		case names == nil:
			names = fields
		default:
			if i := slices.Index(names, name); i > 0 && i < len(fields) {
				return strconv.ParseInt(fields[i], 10, 64)
			}
		}
	}
	return 0, fmt.Errorf("the kernel has no TCP counter %s", name)
}

// WaitCounter waits at most 5 s until a counter reaches a value.
func (n *Node) WaitCounter(name string, least int64) error {
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		got, err := n.Counter(name)
		if err != nil || got >= least {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s is %d, not %d", name, got, least)
		}
	}
}

func (n *Node) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.namespace.Fd()) }

func (n *Node) close() { _ = n.namespace.Close() }
