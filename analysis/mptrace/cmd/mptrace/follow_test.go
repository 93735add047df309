package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mplab/analysis/mptrace/tables"
)

// TestFollow: each summary is the one of the file's current content, and the
// tables are those of the last analysis.
func TestFollow(t *testing.T) {
	whole, err := os.ReadFile("../../testdata/two-paths-wlan0.pcapng")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "grows.pcapng")
	steps := [][]byte{nil, whole[:9000], whole[:9000], whole[:9100], whole}
	var out bytes.Buffer
	var printed []string
	o := defaults
	o.follow, o.dir = 7, filepath.Join(t.TempDir(), "tables")
	err = followUntil([]string{name}, o, &out, func(d time.Duration) bool {
		if d < 7*time.Second {
			t.Errorf("it waits %v", d)
		}
		printed = append(printed, out.String())
		out.Reset()
		if n := len(printed); steps[n-1] != nil {
			if err := os.WriteFile(name, steps[n-1], 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return len(printed) < len(steps)
	})
	if err != nil {
		t.Fatal(err)
	}
	printed = append(printed, out.String())
	if printed[0] != "" || printed[1] != "" || printed[3] != "" {
		t.Errorf("summaries without new content: %q", printed)
	}
	for i, content := range map[int][]byte{2: whole[:9000], 4: whole[:9100], 5: whole} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		once := defaults
		_ = analyse([]string{name}, once, &want)
		_, got, _ := strings.Cut(strings.TrimPrefix(printed[i], "\n=== "), "\n")
		if !strings.HasPrefix(printed[i], "\n=== ") || got != want.String() {
			t.Errorf("step %d:\n%s\nwant\n%s", i, printed[i], want.String())
		}
	}
	if entries, err := os.ReadDir(o.dir); err != nil || len(entries) != len(tables.Set(tables.All).Names())+1 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestFollowErrors(t *testing.T) {
	const file = "../../testdata/two-paths-wlan0.pcapng"
	for _, arguments := range [][]string{
		{"--follow"}, {"--follow=0", file}, {"--follow=x", file}, {"--follow", "--json", file}, {"--follow", "-"}, {"--follow", "--xplot", "x", file},
		{"--follow", "--filter", "port x", file},
	} {
		if out, err := run(t, arguments...); err == nil || out != "" {
			t.Errorf("%v: %v, %s", arguments, err, out)
		}
	}
}
