package netbox

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Node is a network namespace with a thread in it.
type Node struct {
	path string // path of the namespace
	work chan func()
}

// NewNode creates a namespace. Close ends it.
func NewNode() (*Node, error) {
	n := &Node{work: make(chan func())}
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
		return nil, fmt.Errorf("make a network namespace: %w", err)
	}
	return n, n.Run("ip", "link", "set", "lo", "up")
}

// Close ends the thread of the node. Processes and sockets in the namespace keep it alive.
func (n *Node) Close() { close(n.work) }

// Do runs f in the namespace. Sockets that f opens stay in it.
func (n *Node) Do(f func()) {
	done := make(chan struct{})
	n.work <- func() {
		defer close(done)
		f()
	}
	<-done
}

// Start starts a process in the namespace; it is killed when this process ends.
func (n *Node) Start(command *exec.Cmd) (err error) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	n.Do(func() { err = command.Start() })
	return err
}

// Run runs a command in the namespace.
func (n *Node) Run(name string, args ...string) error {
	_, err := n.Output(name, args...)
	return err
}

// Output runs a command in the namespace and returns its output, even if it failed.
func (n *Node) Output(name string, args ...string) (string, error) {
	var output strings.Builder
	command := exec.Command(name, args...)
	command.Stdout, command.Stderr = &output, &output
	if err := n.Start(command); err != nil {
		return "", err
	}
	if err := command.Wait(); err != nil {
		return output.String(), fmt.Errorf("%s: %w: %s", strings.Join(command.Args, " "), err, output.String())
	}
	return output.String(), nil
}

// Box is a phone and a server with the air between them: the interfaces phone0 (10.9.0.2) and server0 (10.9.0.1), whose
// peers are air-phone and air-server.
type Box struct {
	Phone, Air, Server *Node
}

// Addresses in the box.
const (
	PhoneAddress  = "10.9.0.2"
	ServerAddress = "10.9.0.1"
)

// New creates a box. It does not connect the two peers in the air.
func New() (*Box, error) {
	box := &Box{}
	for _, node := range []**Node{&box.Phone, &box.Air, &box.Server} {
		made, err := NewNode()
		if err != nil {
			box.Close()
			return nil, err
		}
		*node = made
	}
	for _, end := range []struct {
		node                 *Node
		name, other, address string
	}{{box.Phone, "phone0", "air-phone", PhoneAddress}, {box.Server, "server0", "air-server", ServerAddress}} {
		for _, line := range []string{
			fmt.Sprintf("link add %s type veth peer name %s netns %s", end.name, end.other, box.Air.path),
			fmt.Sprintf("addr add %s/24 dev %s", end.address, end.name),
			fmt.Sprintf("link set %s up gso_max_segs 1", end.name),
		} {
			if err := end.node.Run("ip", strings.Fields(line)...); err != nil {
				box.Close()
				return nil, err
			}
		}
	}
	return box, nil
}

// Close ends the box.
func (b *Box) Close() {
	for _, node := range []*Node{b.Phone, b.Air, b.Server} {
		if node != nil {
			node.Close()
		}
	}
}
