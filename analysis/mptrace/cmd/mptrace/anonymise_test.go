package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const twoPaths = "../../testdata/two-paths-wlan0.pcapng"

// keyLine is the line of a key, for a file or standard input.
var keyLine = strings.Repeat("0123456789abcdef", 10) + "\n"

// anonymised runs the command and returns its output and exit code.
func anonymised(t *testing.T, stdin string, arguments ...string) (stdout string, code int, err error) {
	t.Helper()
	command := newAnonymiseCommand()
	command.SilenceUsage, command.SilenceErrors = true, true
	var out bytes.Buffer
	command.SetIn(strings.NewReader(stdin))
	command.SetOut(&out)
	command.SetArgs(arguments)
	if err = command.Execute(); err != nil {
		code = exitBadInput
	}
	if coded := new(exitError); errors.As(err, &coded) {
		code = coded.code
	}
	return out.String(), code, err
}

func TestAnonymise(t *testing.T) {
	dir := t.TempDir()
	plain, packed, again := filepath.Join(dir, "a.pcapng"), filepath.Join(dir, "a.pcapng.gz"), filepath.Join(dir, "b.pcapng")
	mapping, code, err := anonymised(t, keyLine, twoPaths, "-o", plain, "--key", "-", "--mapping")
	if code != 0 || !strings.Contains(mapping, "\n10.1.0.1 ") {
		t.Fatalf("%d, %v, %s", code, err, mapping)
	}
	if out, code, err := anonymised(t, keyLine, twoPaths, "-o", packed, "--key", "-"); code != 0 || out != "" {
		t.Fatalf("%d, %v, %s", code, err, out)
	}
	want, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(packed)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // read only
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, want) {
		t.Errorf("compressed output has another content (%v)", err)
	}
	keyFile := filepath.Join(dir, "key")
	if err := os.WriteFile(keyFile, []byte(keyLine), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, code, err := anonymised(t, "", packed, "-o", again, "--key", keyFile); code != 0 {
		t.Fatal(err)
	}
	for line := range strings.Lines(mapping) {
		old, replacement, _ := strings.Cut(strings.TrimSpace(line), " ")
		if out, code, err := anonymised(t, keyLine+old+"\n127.0.0.1", "--addresses", "--key", "-"); code != 0 || out != replacement+"\n127.0.0.1\n" {
			t.Errorf("%s became %s, in the capture %s (%v)", old, out, replacement, err)
		}
	}
}

// TestAnonymiseAnswers: each address is answered before the next one is sent.
func TestAnonymiseAnswers(t *testing.T) {
	requests, toCommand := io.Pipe()
	fromCommand, answers := io.Pipe()
	done := make(chan error)
	go func() {
		done <- runAnonymise(anonymiseOptions{addresses: true, key: "-"}, bufio.NewReader(requests), answers)
	}()
	lines := bufio.NewReader(fromCommand)
	_, _ = io.WriteString(toCommand, keyLine)
	for _, address := range []string{"10.64.0.1", "::1", "ff:ff:ff:ff:ff:ff"} {
		_, _ = io.WriteString(toCommand, address+"\n")
		if line, err := lines.ReadString('\n'); err != nil || line != address+"\n" {
			t.Fatalf("%s: %v, %s", address, err, line)
		}
	}
	_ = toCommand.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAnonymiseRefuses(t *testing.T) {
	dir := t.TempDir()
	b, err := os.ReadFile(twoPaths)
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string, content []byte, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cut, text := file("cut", b[:9000], 0o600), file("text", []byte("hello, world"), 0o600)
	var half bytes.Buffer
	z := gzip.NewWriter(&half)
	_, _ = z.Write(b)
	_ = z.Close()
	out := filepath.Join(dir, "out.pcapng")
	for _, c := range []struct {
		name      string
		stdin     string
		arguments []string
		code      int
		message   string
	}{
		{"cut", "", []string{cut, "-o", out}, 1, "cut short"},
		{"cut gzip", "", []string{file("cut.gz", half.Bytes()[:half.Len()/2], 0o600), "-o", out}, 1, "cut short"},
		{"damaged gzip", "", []string{file("bad.gz", append(half.Bytes()[:half.Len()-8:half.Len()-8], 1, 2, 3, 4, 5, 6, 7, 8), 0o600), "-o", out}, 1, "damaged"},
		{"gzip cut in its header", "", []string{file("header.gz", half.Bytes()[:5], 0o600), "-o", out}, 2, "header.gz: "},
		{"no capture", "", []string{text, "-o", out}, 2, "not a pcap or pcapng file"},
		{"no file", "", []string{dir + "/none", "-o", out}, 2, "no such file"},
		{"existing output", "", []string{twoPaths, "-o", text}, 2, "file exists"},
		{"no folder", "", []string{twoPaths, "-o", dir + "/none/out"}, 2, "no such file"},
		{"nothing", "", nil, 2, "no capture given"},
		{"no output", "", []string{twoPaths}, 2, "--output"},
		{"two captures", "", []string{twoPaths, twoPaths, "-o", out}, 2, "at most 1 arg"},
		{"one input for two", keyLine, []string{"-", "-o", out, "--key", "-"}, 2, "cannot both be standard input"},
		{"a capture with addresses", keyLine, []string{twoPaths, "--addresses"}, 2, "--addresses takes no capture"},
		{"short key", "0123\n", []string{twoPaths, "-o", out, "--key", "-"}, 2, "want a line of 160 hexadecimal digits"},
		{"no key", "", []string{twoPaths, "-o", out, "--key", "-"}, 2, "want a line of 160 hexadecimal digits"},
		{"long key", strings.Repeat("0", 5000), []string{twoPaths, "-o", out, "--key", "-"}, 2, "too long"},
		{"readable key", "", []string{twoPaths, "-o", out, "--key", file("key", []byte(keyLine), 0o644)}, 2, "may be used by others"},
		{"no address", "host\n", []string{"--addresses"}, 2, `"host" is not an IPv4, IPv6 or MAC address`},
		{"long line", strings.Repeat("1", 5000), []string{"--addresses"}, 2, "too long"},
	} {
		stdout, code, err := anonymised(t, c.stdin, c.arguments...)
		if code != c.code || err == nil || !strings.Contains(err.Error(), c.message) || stdout != "" || strings.Contains(err.Error(), "0123456789abcdef") {
			t.Errorf("%s: exit code %d, %v, %q", c.name, code, err, stdout)
		}
		if _, err := os.Stat(out); (err == nil) != (c.code == 1) {
			t.Errorf("%s: there is an output: %t", c.name, err == nil)
		}
		_ = os.Remove(out)
	}
}
