package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mplab/analysis/mptrace/tables"
)

func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	whole := "../../testdata/two-paths-wlan0.pcapng"
	b, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cut, text, empty := file("cut", b[:9000]), file("text", []byte("hello, world")), file("empty", nil)
	for _, c := range []struct {
		files []string
		want  int
	}{
		{[]string{whole}, 0},
		{[]string{cut}, 1},
		{[]string{whole, text}, 1},
		{[]string{whole, dir + "/none"}, 1},
		{[]string{text}, 2},
		{[]string{empty, text}, 2},
		{nil, 2},
		{[]string{whole, "--filter", "port 4000"}, 0},
		{[]string{whole, "--filter", ""}, 2},
		{[]string{whole, "--filter", "port x"}, 2},
		{[]string{"-", "--filter", "connection 0"}, 2},
	} {
		o := defaults
		o.json = true
		if n := len(c.files); n > 2 && c.files[n-2] == "--filter" {
			o.filter, o.filtered, c.files = c.files[n-1], true, c.files[:n-2]
		}
		err := analyse(c.files, o, io.Discard)
		got := 0
		if err != nil {
			got = exitBadInput
		}
		if coded := new(exitError); errors.As(err, &coded) {
			got = coded.code
		}
		if got != c.want {
			t.Errorf("%v: exit code %d, want %d", c.files, got, c.want)
		}
	}
}

func TestTablesOfCutFile(t *testing.T) {
	dir := t.TempDir()
	b, err := os.ReadFile("../../testdata/two-paths-wlan0.pcapng")
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(dir, "cut.pcapng")
	if err := os.WriteFile(cut, b[:9000], 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	o := defaults
	o.dir = filepath.Join(dir, "tables")
	_ = analyse([]string{cut}, o, &out)
	if entries, err := os.ReadDir(o.dir); len(entries) != len(tables.Set(tables.All).Names())+1 || out.Len() != 0 {
		t.Errorf("%v, %v, %s", entries, err, out.Bytes())
	}
	var sources struct {
		Partial bool
		Files   []tables.File
	}
	if b, err := os.ReadFile(filepath.Join(o.dir, tables.SourcesFile)); err != nil || json.Unmarshal(b, &sources) != nil ||
		!sources.Partial || len(sources.Files) != 1 || !sources.Files[0].Partial || sources.Files[0].Packets == 0 {
		t.Errorf("%v, %s", err, b)
	}
}

// TestFilterInSummary: the summary names the filter.
func TestFilterInSummary(t *testing.T) {
	var out bytes.Buffer
	command := newCommand()
	command.SetOut(&out)
	command.SetArgs([]string{"--filter", "port 4000  and connection 0", "../../testdata/two-paths-wlan0.pcapng"})
	if err := command.Execute(); err != nil || !bytes.Contains(out.Bytes(), []byte("\nonly packets that match --filter \"port 4000 and connection 0\"\n")) {
		t.Errorf("%v\n%s", err, out.Bytes())
	}
}

// TestDisplayFilterInSummary: the summary has a display filter, unless the
// addresses in the tables are not those of the packets.
func TestDisplayFilterInSummary(t *testing.T) {
	const file = "../../testdata/two-paths-wlan0.pcapng"
	const want = "\n  connection 0: ip.addr == 10.1.0.1 && tcp.port == 39846 && ip.addr == 10.1.0.2 && tcp.port == 4000\n"
	if out, err := run(t, file); err != nil || !strings.Contains(out, want) {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := run(t, "--join-loopback", file); err != nil || strings.Contains(out, "tcp.port") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestManual: the manual documents the existing columns.
func TestManual(t *testing.T) {
	var want bytes.Buffer
	if err := tables.WriteSchemaMarkdown(&want); err != nil {
		t.Fatal(err)
	}
	manual, err := os.ReadFile("../../../../docs/trace-tables.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasSuffix(manual, want.Bytes()) {
		t.Error("docs/trace-tables.md is not what `mptrace schema` prints")
	}
}
