package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mplab/linkem/internal/exit"
	"mplab/linkem/internal/trace"
)

const shippedTraces = "../../router-configs/traces"

// command runs the program and returns its exit code and output.
func command(args ...string) (code int, stdout, stderr string) {
	var out, err strings.Builder
	code = Main(args, &out, &err)
	return code, out.String(), err.String()
}

// TestShippedTracesAreWhatTheySay reproduces each trace that a command made, and compares the others with their
// summary.
func TestShippedTracesAreWhatTheySay(t *testing.T) {
	entries, err := os.ReadDir(shippedTraces)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, entry := range entries {
		file := filepath.Join(shippedTraces, entry.Name())
		if strings.HasSuffix(file, trace.OriginSuffix) {
			if _, err := os.Stat(strings.TrimSuffix(file, trace.OriginSuffix)); err != nil {
				t.Errorf("%s is beside no trace", file)
			}
			continue
		}
		if entry.Name() == "README.md" {
			continue
		}
		count++
		shipped, err := trace.Load(file)
		if err != nil {
			t.Error(err)
			continue
		}
		origin, err := trace.LoadOrigin(file)
		if err != nil || origin.Title == "" || origin.Source == "" {
			t.Errorf("%s has no origin: %+v, %v", file, origin, err)
			continue
		}
		if origin.Summary != (trace.Summary{}) && origin.Summary != shipped.Summarise() {
			t.Errorf("%s: offers %+v, and says %+v", file, shipped.Summarise(), origin.Summary)
		}
		if words := strings.Fields(origin.MadeBy); slices.Contains(words, "trace") {
			again := filepath.Join(t.TempDir(), "again")
			if code, _, stderr := command(append(words[1:], "--out", again)...); code != exit.OK {
				t.Errorf("%s: %s", origin.MadeBy, stderr)
				continue
			}
			if made, _ := os.ReadFile(again); !bytes.Equal(made, shipped.Bytes()) {
				t.Errorf("%s: %s makes another trace", file, origin.MadeBy)
			}
		}
	}
	if count < 8 {
		t.Errorf("only %d traces", count)
	}
}

func TestTraceCommands(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "six")
	code, stdout, stderr := command("trace", "constant", "--kbps", "6000", "--out", file)
	if code != exit.OK || !strings.Contains(stdout, "6000 kbit/s") {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
	code, stdout, _ = command("trace", "check", "--json", file)
	want := `{"file":"` + file + `","opportunities":1,"seconds":0.002,"mean_kbps":6000,"least_kbps":6000,"most_kbps":6000,"longest_gap_ms":2}` + "\n"
	if code != exit.OK || stdout != want {
		t.Errorf("exit code %d, %s", code, stdout)
	}
	bad := filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, []byte("1\n2\nx\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		message string
		code    int
		args    []string
	}{
		{"file exists", exit.Failed, []string{"trace", "constant", "--kbps", "6000", "--out", file}},
		{"--kbps is missing", exit.Config, []string{"trace", "constant", "--out", file}},
		{"--out is missing", exit.Config, []string{"trace", "driving"}},
		{"a walk needs two levels or more", exit.Config, []string{"trace", "walking", "--levels", "7", "--out", file + "2"}},
		{bad + `:3: "x" is not a whole number of milliseconds`, exit.Config, []string{"trace", "check", file, bad}},
		{"no FILE is given", exit.Config, []string{"trace", "check"}},
		{`unexpected argument "sing"`, exit.Config, []string{"trace", "sing"}},
		{"give one CAPTURE", exit.Config, []string{"record"}},
		{`--direction is down or up, not "left"`, exit.Config, []string{"record", bad, "--out", file, "--direction", "left"}},
		{"--skip and --duration are from 0", exit.Config, []string{"record", bad, "--out", file, "--skip", "-1"}},
		{bad + ": not a pcap or pcapng file", exit.Failed, []string{"record", bad, "--out", file}},
	} {
		if code, _, stderr := command(c.args...); code != c.code || !strings.Contains(stderr, c.message) {
			t.Errorf("%v: exit code %d, %s", c.args, code, stderr)
		}
	}
}
