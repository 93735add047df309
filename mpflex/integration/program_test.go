package integration

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mplab/internal/testkit"
	"mplab/mpflex/connlog"
)

// patience bounds the wait for any expected event.
const patience = testkit.Patience

// values is a configuration, or changes to one.
type values map[string]any

// program is mpflex running in a node.
type program struct {
	cmd    *exec.Cmd
	stderr *bytes.Buffer
	ended  chan error
	log    string
}

// setup is a proxy and an agent.
type setup struct{ proxy, agent *program }

// start starts a proxy, and an agent whose configuration has these changes.
func start(t testing.TB, changes values) setup {
	t.Helper()
	needLab(t)
	return setup{startProxy(t, nil), startAgent(t, changes)}
}

func startProxy(t testing.TB, changes values) *program {
	t.Helper()
	return run(t, "proxy", "proxy", proxyConfig(t, changes))
}

func startAgent(t testing.TB, changes values) *program {
	t.Helper()
	return run(t, "phone", "agent", agentConfig(t, changes))
}

func proxyConfig(t testing.TB, changes values) values {
	c := values{
		"listen":             values{"tcp": "10.64.3.2:7001", "mptcp": "10.64.3.2:7002", "mpflex": "10.64.3.2:7003", "mpflex_plain": "10.64.3.2:7004"},
		"secret_file":        secretFile(t, "a secret for the tests of mpflex alone"),
		"allow":              []string{"10.65.0.0/16:53,80,443,8080"},
		"congestion_control": "cubic",
		"log":                filepath.Join(t.TempDir(), "proxy.jsonl"),
	}
	maps.Copy(c, changes)
	return c
}

func agentConfig(t testing.TB, changes values) values {
	c := values{
		"listen":             values{"redirect": "127.0.0.1:3128", "dns": "127.0.0.1:3153"},
		"dns_server":         "10.65.0.53:53",
		"proxy":              "10.64.3.2:7002",
		"transport":          "mptcp",
		"mark":               0x6d70,
		"secret_file":        secretFile(t, "a secret for the tests of mpflex alone"),
		"congestion_control": "cubic",
		"log":                filepath.Join(t.TempDir(), "agent.jsonl"),
	}
	maps.Copy(c, changes)
	return c
}

func secretFile(t testing.TB, secret string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func writeConfig(t testing.TB, config values) string {
	t.Helper()
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func command(node string, args ...string) *exec.Cmd {
	cmd := exec.Command("ip", append([]string{"netns", "exec", node, os.Args[0]}, args...)...)
	cmd.Env = append(os.Environ(), programVariable+"=1")
	return cmd
}

// run starts a role in a node and waits until it is ready.
func run(t testing.TB, node, role string, config values) *program {
	t.Helper()
	p := &program{
		cmd: command(node, role, "--config", writeConfig(t, config)), stderr: &bytes.Buffer{},
		ended: make(chan error, 1), log: config["log"].(string),
	}
	p.cmd.Stderr = p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.stop(t) })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || !strings.Contains(line, `"event":"ready"`) {
		_ = p.cmd.Wait()
		t.Fatalf("%s is not ready: %q %s", role, line, p.stderr)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	return p
}

// stop ends the program once by SIGTERM and expects an orderly end.
func (p *program) stop(t testing.TB) {
	t.Helper()
	if p.ended == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-p.ended:
		if err != nil {
			t.Errorf("mpflex ended badly: %v: %s", err, p.stderr)
		}
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		t.Errorf("mpflex did not end on SIGTERM")
	}
	p.ended = nil
}

// records reads the records of one event from a log.
func records[R any](t testing.TB, path, event string) []R {
	t.Helper()
	return testkit.Records[R](t, path, event)
}

// connections waits until a log has count connections to a destination.
func connections(t testing.TB, p *program, dst string, count int) []connlog.Connection {
	t.Helper()
	var found []connlog.Connection
	eventually(t, fmt.Sprintf("%d records of connections to %s", count, dst), func() bool {
		found = nil
		for _, record := range records[connlog.Connection](t, p.log, "connection") {
			if record.Dst.IsValid() && record.Dst.String() == dst {
				found = append(found, record)
			}
		}
		return len(found) >= count
	})
	return found
}

func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	testkit.Eventually(t, what, f)
}
