package ifaces

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Tests with interfaces run in a separate network namespace, if the machine
// permits one: the test binary runs itself again in it.
const (
	insideVariable     = "IFACES_TEST_INSIDE"     // set within the namespace
	restrictedVariable = "IFACES_TEST_RESTRICTED" // set if the binary runs as a restricted application
)

// unavailable is the reason why tests with interfaces cannot run, or "".
var unavailable string

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(restrictedVariable) != "":
		os.Exit(beRestricted())
	case os.Getenv(insideVariable) != "":
		os.Exit(m.Run())
	}
	if unavailable = whyUnavailable(); unavailable != "" {
		os.Exit(m.Run())
	}
	cmd := exec.Command("unshare", append(append(unshareArgs(), os.Args[0]), os.Args[1:]...)...)
	cmd.Env = append(os.Environ(), insideVariable+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	_ = cmd.Run()
	os.Exit(cmd.ProcessState.ExitCode())
}

func unshareArgs() []string {
	args := []string{"--net", "--fork", "--kill-child"}
	if os.Getuid() != 0 {
		args = append([]string{"--user", "--map-root-user"}, args...)
	}
	return args
}

func whyUnavailable() string {
	for _, program := range []string{"unshare", "ip"} {
		if _, err := exec.LookPath(program); err != nil {
			return program + " is not installed"
		}
	}
	args := append(unshareArgs(), "ip", "link", "add", "probe0", "type", "veth", "peer", "name", "probe1")
	if output, err := exec.Command("unshare", args...).CombinedOutput(); err != nil {
		return "interfaces in a network namespace are not permitted: " + strings.TrimSpace(string(output))
	}
	return ""
}

// ip runs lines of ip(8).
func ip(t testing.TB, lines ...string) {
	t.Helper()
	if err := tryIP(lines...); err != nil {
		t.Fatal(err)
	}
}

func tryIP(lines ...string) error {
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip: %w: %s", err, output)
	}
	return nil
}

// makeLink creates an interface with carrier and without address. Its peer is
// called peer-NAME.
func makeLink(t testing.TB, name string) {
	t.Helper()
	if unavailable != "" {
		t.Skip(unavailable)
	}
	ip(t, fmt.Sprintf("link add %s type veth peer name peer-%s", name, name),
		"link set "+name+" up", "link set peer-"+name+" up")
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", "peer-"+name).Run() })
}
