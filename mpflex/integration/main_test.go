package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"mplab/mpflex/cli"
)

const (
	insideVariable  = "MPFLEX_TEST_INSIDE"  // set inside the private namespaces
	programVariable = "MPFLEX_TEST_PROGRAM" // set when this binary runs as mpflex
)

// unavailable is the reason why the tests cannot run, or "".
var unavailable string

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(programVariable) != "":
		ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		os.Exit(cli.Execute(ctx, os.Args[1:]))
	case os.Getenv(insideVariable) != "":
		if err := buildLab(); err != nil {
			fmt.Fprintln(os.Stderr, "building the lab:", err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	}
	if unavailable = whyUnavailable(); unavailable != "" {
		os.Exit(m.Run())
	}
	os.Exit(runInside())
}

// unshareArgs returns the arguments for the private namespaces.
func unshareArgs() []string {
	args := []string{"--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"}
	if os.Getuid() != 0 {
		args = append([]string{"--user", "--map-root-user"}, args...)
	}
	return args
}

func whyUnavailable() string {
	for _, program := range []string{"unshare", "ip", "nft", "ss", "mount"} {
		if _, err := exec.LookPath(program); err != nil {
			return program + " is not installed"
		}
	}
	if output, err := exec.Command("unshare", append(unshareArgs(), "mount", "-t", "tmpfs", "tmpfs", "/run")...).CombinedOutput(); err != nil {
		return "private namespaces are not permitted: " + strings.TrimSpace(string(output))
	}
	return ""
}

// runInside runs this binary with its arguments in private namespaces.
func runInside() int {
	cmd := exec.Command("unshare", append(append(unshareArgs(), os.Args[0]), os.Args[1:]...)...)
	cmd.Env = append(os.Environ(), insideVariable+"=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return 1
	}
	return 0
}

func needLab(t testing.TB) {
	t.Helper()
	if unavailable != "" {
		t.Skip(unavailable)
	}
}
