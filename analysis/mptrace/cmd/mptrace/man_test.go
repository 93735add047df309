package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// run executes mptrace with arguments and returns its output.
func run(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	command := newCommand()
	command.SetOut(&out)
	command.SetArgs(arguments)
	err := command.Execute()
	return out.String(), err
}

// requests are the roff requests and macros that a page can have.
var requests = []string{".TH", ".SH", ".PP", ".TP", ".B", ".BR", ".nf", ".fi"}

// TestManualPages: each command has a page with all its options.
func TestManualPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	if out, err := run(t, "man", "-o", dir); err != nil || out != "" {
		t.Fatalf("%v, %s", err, out)
	}
	root := newCommand()
	want := []string{"mptrace-completion.1", "mptrace.1"}
	for _, c := range root.Commands() {
		want = append(want, "mptrace-"+c.Name()+".1")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(want)
	slices.Sort(names)
	if !slices.Equal(names, want) {
		t.Errorf("pages %v, want %v", names, want)
	}
	for _, c := range append(root.Commands(), root) {
		b, err := os.ReadFile(filepath.Join(dir, pageName(c)+".1"))
		if err != nil {
			t.Fatal(err)
		}
		page := string(b)
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if name := `\fB\-\-` + strings.ReplaceAll(f.Name, "-", `\-`) + `\fR`; f.Name != "help" && f.Name != "version" && strings.Count(page, name) != 1 {
				t.Errorf("%s: option --%s: %d times", c.Name(), f.Name, strings.Count(page, name))
			}
		})
		for line := range strings.Lines(page) {
			if word, _, _ := strings.Cut(strings.TrimSpace(line), " "); line[0] == '.' && !slices.Contains(requests, word) || line[0] == '\'' {
				t.Errorf("%s: roff request %q", c.Name(), line)
			}
		}
		for _, section := range []string{".SH NAME\n", ".SH SYNOPSIS\n", ".SH DESCRIPTION\n", ".SH OPTIONS\n", ".SH SEE ALSO\n"} {
			if !strings.Contains(page, section) {
				t.Errorf("%s: no %q", c.Name(), section)
			}
		}
	}
}

func TestManualPage(t *testing.T) {
	page, err := run(t, "man", "capture")
	const start = ".TH MPTRACE\\-CAPTURE 1 \"\" \"mptrace unknown\" \"User Commands\"\n.SH NAME\nmptrace\\-capture \\- Capture the packets of an interface, headers only\n" +
		".SH SYNOPSIS\n.B mptrace capture\n\\-\\-interface NAME \\-\\-write FILE.pcapng [flags]\n.SH DESCRIPTION\ncapture writes"
	if err != nil || !strings.HasPrefix(page, start) || !strings.HasSuffix(page, ".SH SEE ALSO\n.BR mptrace (1)\n") {
		t.Errorf("%v\n%s", err, page)
	}
	if !strings.Contains(page, ".TP\n\\fB\\-i\\fR, \\fB\\-\\-interface\\fR \\fIstring\\fR\ninterface to capture on\n") {
		t.Errorf("no option:\n%s", page)
	}
	if text := lines(".a\n'b\n-c\\d\n"); text != "\\&.a\n\\(aqb\n\\-c\\ed\n" {
		t.Errorf("%q", text)
	}
	if page, err := run(t, "man", "completion"); err != nil || !strings.Contains(page, ".B mptrace completion\n.SH DESCRIPTION\n") ||
		!strings.Contains(page, ".SH COMMANDS\n.TP\n.B mptrace completion bash\n") {
		t.Errorf("%v\n%s", err, page)
	}
	for _, arguments := range [][]string{{"man", "captur"}, {"man", "help"}, {"man", "capture", "-o", t.TempDir()}} {
		if out, err := run(t, arguments...); err == nil || out != "" {
			t.Errorf("%v: %v, %s", arguments, err, out)
		}
	}
	if root, err := run(t, "man"); err != nil || !strings.Contains(root, ".BR mptrace\\-capture (1),\n") || !strings.Contains(root, "\\fB\\-\\-json\\fR\nprint") {
		t.Errorf("%v\n%s", err, root)
	}
}
