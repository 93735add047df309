package rig

import (
	"bufio"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mplab/bench/mpflex/role"
)

const (
	longestStart = 20 * time.Second // maximum time until a program is ready
	longestStop  = 10 * time.Second // between SIGTERM and SIGKILL
	mostStderr   = 16 << 10         // maximum number of kept bytes
)

// Program is a program that runs in a node.
type Program struct {
	name   string
	cmd    *exec.Cmd
	stderr tail
	ended  chan struct{} // closed when the program has ended
}

// ExitError means that a program ended before it was ready.
type ExitError struct {
	Program string
	Code    int
	Stderr  string
}

// Error implements error.
func (e *ExitError) Error() string {
	return fmt.Sprintf("%s ended with exit code %d before it was ready: %s", e.Program, e.Code, e.Stderr)
}

// Start starts a program in the node and waits for its ready line. If the program ends instead, the error is an
// *ExitError.
func (n *Node) Start(r role.Role, args ...string) (*Program, error) {
	p := &Program{name: fmt.Sprintf("%s on %s", r, n.Name), cmd: role.Command(r, args...), ended: make(chan struct{})}
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := n.start(p.cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	kill := time.AfterFunc(longestStart, func() { _ = p.cmd.Process.Kill() })
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	inTime := kill.Stop()
	if strings.Contains(line, `"event":"ready"`) {
		go func() {
			_ = p.cmd.Wait()
			close(p.ended)
		}()
		return p, nil
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	if !inTime {
		return nil, fmt.Errorf("%s was not ready after %v", p.name, longestStart)
	}
	return nil, &ExitError{Program: p.name, Code: p.cmd.ProcessState.ExitCode(), Stderr: p.stderr.String()}
}

// Ended returns an error that describes how the program ended, or nil while it runs.
func (p *Program) Ended() error {
	if p == nil {
		return errors.New("it is not running")
	}
	select {
	case <-p.ended:
		return fmt.Errorf("%s has ended: %v: %s", p.name, p.cmd.ProcessState, p.stderr.String())
	default:
		return nil
	}
}

// Stop ends the program with SIGTERM, or if it does not end, with SIGKILL and an error. If the program has already
// ended, Stop returns an error too, because a benchmark program must run until it is stopped.
func (p *Program) Stop() error {
	if p == nil {
		return nil
	}
	if ended := p.Ended(); ended != nil {
		return ended
	}
	_ = p.cmd.Process.Signal(unix.SIGTERM)
	select {
	case <-p.ended:
		return nil
	case <-time.After(longestStop):
		_ = p.cmd.Process.Kill()
		<-p.ended
		return fmt.Errorf("%s did not end within %v of SIGTERM: %s", p.name, longestStop, p.stderr.String())
	}
}

// StopAll stops programs in the given order and joins their errors.
func StopAll(programs ...*Program) error {
	var errs []error
	for _, p := range programs {
		errs = append(errs, p.Stop())
	}
	return errors.Join(errs...)
}

// tail keeps the last bytes that are written to it.
type tail struct {
	mu   sync.Mutex
	text []byte // guarded by mu
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if extra := len(t.text) - mostStderr; extra > 0 {
		t.text = t.text[extra:]
	}
	return len(b), nil
}

// String returns the kept text without surrounding white space.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
