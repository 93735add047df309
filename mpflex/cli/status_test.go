package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mplab/control"
	"mplab/internal/cmdline"
	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/forward/relay"
	"mplab/mpflex/status"
)

// ask runs `mpflex status` and returns its output.
func ask(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := command()
	root.SetArgs(append([]string{"status"}, args...))
	root.SetOut(&out)
	root.SetErr(&out)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// code returns the exit code of an error; see Execute.
func code(err error) int {
	var exit *cmdline.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.Code
	}
	return cmdline.BadInput
}

// serve starts a control socket of an agent with one open connection.
func serve(t *testing.T) (path string) {
	t.Helper()
	var open status.Open
	open.Add(&connlog.Connection{ID: 7, Transport: "tcp", Opened: connlog.Now()}, &relay.Session{})
	source := &status.Source{Role: "agent", Transport: "tcp", Started: time.Now(), Open: &open}
	path = filepath.Join(t.TempDir(), "control")
	stop, err := source.Serve(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return path
}

func TestStatusOnce(t *testing.T) {
	path := serve(t)
	table, err := ask(t, "--control", path)
	if err != nil || !strings.HasPrefix(table, "agent, transport tcp, process ") || !strings.Contains(table, "connections: 1 open, 0 ended") || strings.Contains(table, "\x1b") {
		t.Errorf("%v: %s", err, table)
	}
	if table, err = ask(t, "--control", path, "--streams"); err != nil || !strings.Contains(table, "CONNECTION") {
		t.Errorf("%v: %s", err, table)
	}
	for _, c := range []struct {
		args []string
		list bool
	}{{nil, false}, {[]string{"--streams"}, true}} {
		line, err := ask(t, append([]string{"--control", path, "--json"}, c.args...)...)
		var r status.Report
		if err != nil || strings.Count(line, "\n") != 1 || json.Unmarshal([]byte(line), &r) != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if r.Role != "agent" || r.Transport != "tcp" || r.PID == 0 || r.Connections.Open != 1 || (len(r.OwnConnections) == 1) != c.list {
			t.Errorf("%s", line)
		}
	}
}

func TestStatusErrors(t *testing.T) {
	dir := t.TempDir()
	path := serve(t)
	stale := filepath.Join(dir, "stale")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	_ = left.Close()
	other := filepath.Join(dir, "other")
	foreign, err := control.Listen(other, "another program")
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	foreign.Start(control.Operations{"state": func() (any, error) { return nil, nil }}.Answer)
	for _, c := range []struct {
		args []string
		code int
		text string
	}{
		{nil, cmdline.BadInput, `required flag(s) "control" not set`},
		{[]string{"--control", ""}, cmdline.BadInput, "the path is empty"},
		{[]string{"--control", path, "2s"}, cmdline.BadInput, `unexpected argument "2s"`},
		{[]string{"--control", path, "--watch=soon"}, cmdline.BadInput, `--watch: "soon" is no interval`},
		{[]string{"--control", path, "--watch", "-1"}, cmdline.BadInput, "shorthand"},
		{[]string{"--control", path, "--watch", "0.01"}, cmdline.BadInput, `--watch: "0.01" is no interval, such as 2s or 500ms, of at least 50ms`},
		{[]string{"--control", path, "--watch=nan"}, cmdline.BadInput, "is no interval"},
		{[]string{"--control", dir}, cmdline.BadInput, "not a socket"},
		{[]string{"--control", filepath.Join(dir, "none")}, cmdline.NotReady, "there is no such socket"},
		{[]string{"--control", stale}, cmdline.NotReady, "no program serves it"},
		{[]string{"--control", other}, cmdline.Failed, `unknown operation "status"; there are state`},
	} {
		if out, err := ask(t, c.args...); code(err) != c.code || err == nil || !strings.Contains(err.Error(), c.text) || out != "" {
			t.Errorf("%v: exit code %d, %v, printed %q", c.args, code(err), err, out)
		}
	}
}

// pages collects the output and ends the server after some pages.
type pages struct {
	bytes.Buffer
	left int
	stop func()
}

func (p *pages) Write(b []byte) (int, error) {
	if p.left--; p.left == 0 {
		go p.stop()
	}
	return p.Buffer.Write(b)
}

func TestWatchEndsWithTheProgram(t *testing.T) {
	source := &status.Source{Role: "proxy", Started: time.Now(), Open: &status.Open{}}
	path := filepath.Join(t.TempDir(), "control")
	stop, err := source.Serve(path)
	if err != nil {
		t.Fatal(err)
	}
	const shown = 3
	for _, args := range [][]string{{"--watch=50ms", "--json"}, {"--json", "--watch", "0.05"}, {"--watch", "50ms"}} {
		out := &pages{left: shown, stop: stop}
		root := command()
		root.SetArgs(append([]string{"status", "--control", path}, args...))
		root.SetOut(out)
		err := root.ExecuteContext(t.Context())
		if code(err) != cmdline.Failed || !errors.Is(err, control.ErrEnded) {
			t.Errorf("%v: %v", args, err)
		}
		if n := strings.Count(out.String(), "proxy"); n < shown {
			t.Errorf("%v: %d times: %s", args, n, out.String())
		}
		if stop, err = source.Serve(path); err != nil {
			t.Fatal(err)
		}
	}
	stop()
}

// closed is a writer whose reader has closed.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, net.ErrClosed }

func TestWatchEndsWithItsReader(t *testing.T) {
	root := command()
	root.SetArgs([]string{"status", "--control", serve(t), "--watch"})
	root.SetOut(closed{})
	if err := root.ExecuteContext(t.Context()); code(err) != cmdline.Failed || !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}
