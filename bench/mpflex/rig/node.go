package rig

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Node is a network namespace: that of this process, or one with a separate thread.
type Node struct {
	Name string
	path string      // path of the namespace
	work chan func() // nil: the namespace of this process
}

// self returns the node of this process.
func self(name string) *Node { return &Node{Name: name, path: "/proc/self/ns/net"} }

// newNode creates a namespace.
func newNode(name string) (*Node, error) {
	n := &Node{Name: name, work: make(chan func())}
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: thread and namespace end with the goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		n.path = fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid())
		made <- err
		if err != nil {
			return
		}
		for f := range n.work {
			f()
		}
	}()
	if err := <-made; err != nil {
		return nil, fmt.Errorf("%s: make a network namespace: %w", name, err)
	}
	return n, n.ip("link set lo up")
}

// close ends the thread of the node. Processes and sockets in the namespace keep it alive.
func (n *Node) close() {
	if n.work != nil {
		close(n.work)
	}
}

// Do runs f in the namespace. Sockets that f opens and processes that it starts stay in the namespace.
func (n *Node) Do(f func()) {
	if n.work == nil {
		f()
		return
	}
	done := make(chan struct{})
	n.work <- func() {
		defer close(done)
		f()
	}
	<-done
}

// ip runs commands of ip(8) in the namespace.
func (n *Node) ip(lines ...string) error {
	return n.feed(strings.Join(lines, "\n")+"\n", "ip", "-batch", "-")
}

// nft runs an nft(8) script in the namespace.
func (n *Node) nft(script string) error { return n.feed(script, "nft", "-f", "-") }

// feed runs a command in the namespace with text as its standard input.
func (n *Node) feed(text, name string, args ...string) error {
	var output strings.Builder
	command := exec.Command(name, args...)
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(text), &output, &output
	err := n.start(command)
	if err == nil {
		err = command.Wait()
	}
	if err != nil {
		return fmt.Errorf("%s: %s: %w: %s", n.Name, name, err, strings.TrimSpace(output.String()))
	}
	return nil
}

// start starts a command in the namespace, in a separate process group. So an interrupt from the keyboard only reaches
// the benchmark, which ends the other processes in order.
func (n *Node) start(command *exec.Cmd) (err error) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	n.Do(func() { err = command.Start() })
	return err
}

// SetSysctl sets a sysctl of the namespace and verifies it. The key has dots: "net.ipv4.ip_forward".
func (n *Node) SetSysctl(key, value string) error {
	file := "/proc/sys/" + strings.ReplaceAll(key, ".", "/")
	var err error
	var got []byte
	n.Do(func() {
		if err = os.WriteFile(file, []byte(value), 0o644); err == nil {
			got, err = os.ReadFile(file)
		}
	})
	if err != nil {
		return fmt.Errorf("%s: sysctl %s: %w", n.Name, key, err)
	}
	if strings.TrimSpace(string(got)) != value {
		return fmt.Errorf("%s: sysctl %s is %s after setting it to %s", n.Name, key, strings.TrimSpace(string(got)), value)
	}
	return nil
}
