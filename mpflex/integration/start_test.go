package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/measure/check"
)

// once runs mpflex until it ends.
func once(t testing.TB, node string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := command(node, args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return out.String(), errOut.String(), code
}

func TestCheck(t *testing.T) {
	needLab(t)
	startProxy(t, nil)
	serveOrigin(t, web, echo)
	cases := []struct {
		name    string
		changes values
		args    []string
		code    int
		local   []string
		err     string
	}{
		{"two subflows", nil, []string{"--wait-subflows", "2"}, 0, []string{"10.64.1.2", "10.64.2.2"}, ""},
		{"to a target", nil, []string{"--wait-subflows", "2", "--target", web}, 0, []string{"10.64.1.2", "10.64.2.2"}, ""},
		{"first subflow on a device", values{"device": "rmnet0"}, nil, 0, []string{"10.64.2.2"}, ""},
		{"one path", values{"transport": "tcp", "device": "rmnet0", "proxy": "10.64.3.2:7001"}, nil, 0, []string{"10.64.2.2"}, ""},
		{"a second path of plain TCP", values{"transport": "tcp", "proxy": "10.64.3.2:7001"}, []string{"--wait-subflows", "2"}, 1, nil, "the connection is plain TCP"},
		{"three subflows", nil, []string{"--wait-subflows", "3", "--timeout", "300ms"}, 1, nil, "2 of 3 subflows after 300ms"},
		{"outside the allow list", nil, []string{"--target", "192.0.2.1:80"}, 1, nil, "not in the proxy's allow list"},
		{"no proxy", values{"proxy": "10.64.3.2:7009"}, nil, 1, nil, "the proxy cannot be reached: connecting to 10.64.3.2:7009: connection refused"},
		{"another secret", values{"secret_file": secretFile(t, "some other secret of size")}, nil, 1, nil, "without an answer"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			file := writeConfig(t, agentConfig(t, c.changes))
			stdout, stderr, code := once(t, "phone", append([]string{"check", "--config", file}, c.args...)...)
			var result check.Result
			if err := json.Unmarshal([]byte(stdout), &result); err != nil || code != c.code || result.OK != (code == 0) {
				t.Fatalf("exit code %d, %v: %s %s", code, err, stdout, stderr)
			}
			if !strings.Contains(result.Error, c.err) {
				t.Errorf("error: %s", result.Error)
			}
			if c.code != 0 {
				return
			}
			var local []string
			for _, addr := range result.Local {
				local = append(local, addr.String())
			}
			// Without --wait-subflows, further subflows may or may not exist yet.
			if !slices.Equal(local[:len(c.local)], c.local) || result.CongestionControl != "cubic" || result.RTTms <= 0 {
				t.Errorf("%s", stdout)
			}
		})
	}
}

// TestCheckSession: check makes its own session and paths, next to that of an agent.
func TestCheckSession(t *testing.T) {
	s := start(t, flex(false))
	serveOrigin(t, web, echo)
	both := []string{"wlan0", "rmnet0"}
	nowhere := values{"paths": []values{{"device": "wlan0"}, {"device": "wlan7"}}}
	cases := []struct {
		name    string
		plain   bool
		changes values
		args    []string
		paths   []string
		err     string
	}{
		{"two paths", false, nil, []string{"--wait-subflows", "2"}, both, ""},
		{"two plain paths", true, nil, []string{"--wait-subflows", "2"}, both, ""},
		{"to a target", false, nil, []string{"--wait-subflows", "2", "--target", web}, both, ""},
		{"one of them", false, values{"paths": []values{{"device": "rmnet0"}}}, nil, []string{"rmnet0"}, ""},
		{"without waiting", false, nowhere, nil, []string{"wlan0"}, ""},
		{"no such interface", false, nowhere, []string{"--wait-subflows", "2", "--timeout", "2s"}, nil, "1 of 2 paths after 2s (wlan7: the interface is not there, down, without carrier or without an address)"},
		{"three paths", false, nil, []string{"--wait-subflows", "3"}, nil, "3 paths are requested; the configuration has 2"},
		{"plain to the private port", false, values{"plain": true}, []string{"--wait-subflows", "1", "--timeout", "2s"}, nil, "0 of 1 paths after 2s (wlan0: "},
		{"outside the allow list", false, nil, []string{"--target", "192.0.2.1:80"}, nil, "not in the proxy's allow list"},
		{"no proxy", false, values{"proxy": "10.64.3.2:7009"}, []string{"--timeout", "1s"}, nil, "no answer within 1s (wlan0: connecting to 10.64.3.2:7009: connection refused"},
		{"another secret", false, values{"secret_file": secretFile(t, "some other secret of at least 32 bytes")}, []string{"--timeout", "1s"}, nil, "no answer within 1s (wlan0: "},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			config := agentConfig(t, flex(c.plain))
			maps.Copy(config, c.changes)
			file := writeConfig(t, config)
			stdout, stderr, code := once(t, "phone", append([]string{"check", "--config", file}, c.args...)...)
			var result check.Result
			if err := json.Unmarshal([]byte(stdout), &result); err != nil || result.OK != (code == 0) || result.OK != (c.err == "") {
				t.Fatalf("exit code %d, %v: %s %s", code, err, stdout, stderr)
			}
			if !strings.Contains(result.Error, c.err) {
				t.Errorf("error: %s", result.Error)
			}
			if !result.OK {
				return
			}
			if !slices.Equal(result.Paths, c.paths) || result.Subflows != len(c.paths) || len(result.Local) != len(c.paths) || result.Multipath ||
				result.Transport != "mpflex" || result.Plain != c.plain || result.CongestionControl != "cubic" || result.RTTms <= 0 {
				t.Errorf("%s", stdout)
			}
		})
	}
	for _, e := range records[connlog.PathEvent](t, s.agent.log, "path") {
		if e.What != "attached" {
			t.Errorf("the agent's own path: %+v", e)
		}
	}
}

func TestNotReady(t *testing.T) {
	needLab(t)
	startProxy(t, nil)
	cases := []struct {
		name, role string
		config     values
		want       string
	}{
		{"congestion control", "agent", agentConfig(t, values{"congestion_control": "vegas2"}), "the congestion control cannot be set: vegas2"},
		{"congestion control", "proxy", proxyConfig(t, values{"congestion_control": "vegas2"}), "the congestion control cannot be set: vegas2"},
		{"device", "agent", agentConfig(t, values{"device": "wlan7"}), "a socket cannot be bound to the device: wlan7"},
		{"address", "agent", agentConfig(t, values{"listen": values{"redirect": "10.9.9.9:3128"}}), "listening on 10.9.9.9:3128: bind: cannot assign requested address"},
		{"address in use", "proxy", proxyConfig(t, nil), "bind: address already in use"},
		{"log", "proxy", proxyConfig(t, values{"log": "/nonexistent/proxy.jsonl"}), "opening the log"},
	}
	for _, c := range cases {
		t.Run(c.role+" "+c.name, func(t *testing.T) {
			node := map[string]string{"agent": "phone", "proxy": "proxy"}[c.role]
			stdout, stderr, code := once(t, node, c.role, "--config", writeConfig(t, c.config))
			if code != 3 || !strings.Contains(stderr, c.want) || stdout != "" {
				t.Errorf("exit code %d: %q %q", code, stdout, stderr)
			}
		})
	}
}

func TestWithoutKernelMultipath(t *testing.T) {
	needLab(t)
	output(t, "phone", "sysctl", "-qw", "net.mptcp.enabled=0")
	defer output(t, "phone", "sysctl", "-qw", "net.mptcp.enabled=1")
	for _, role := range []string{"agent", "check"} {
		_, stderr, code := once(t, "phone", role, "--config", writeConfig(t, agentConfig(t, nil)))
		if code != 3 || !strings.Contains(stderr, "the kernel offers no MPTCP here") {
			t.Errorf("%s: exit code %d: %q", role, code, stderr)
		}
	}
}

func TestBadInput(t *testing.T) {
	needLab(t)
	for _, args := range [][]string{
		{"agent"},
		{"agent", "--config", "/nonexistent.json"},
		{"proxy", "--config", writeConfig(t, values{"listne": 1})},
		{"check", "--config", writeConfig(t, agentConfig(t, nil)), "--target", "localhost"},
		{"agnet"},
	} {
		if _, stderr, code := once(t, "phone", args...); code != 2 || !strings.HasPrefix(stderr, "mpflex: ") {
			t.Errorf("%v: exit code %d: %q", args, code, stderr)
		}
	}
}
