package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
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
	} {
		err := analyse(c.files, analyseOptions{json: true}, io.Discard)
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
	_ = analyse([]string{cut}, analyseOptions{dir: filepath.Join(dir, "tables")}, &out)
	if entries, err := os.ReadDir(filepath.Join(dir, "tables")); len(entries) != 2 || out.Len() != 0 {
		t.Errorf("%v, %v, %s", entries, err, out.Bytes())
	}
}
