package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mplab/linkem/model"
)

func TestTraceInAConfiguration(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good", "1\n2\n2\n")
	request := func(up string) string {
		return fmt.Sprintf(`{"op":"apply","link":"w","down":{},"up":%s}`, up)
	}
	asked, err := ParseRequest([]byte(request(fmt.Sprintf(`{"trace":%q,"rate_kbps":0}`, good))))
	if err != nil || asked.Up.Opportunities.Len() != 3 || asked.Up.Queue.Bytes != model.DefaultQueueBytes {
		t.Errorf("%+v, %v", asked.Up, err)
	}
	for up, message := range map[string]string{
		`{"trace":"good"}`: `up.trace: must be an absolute path, found "good"`,
		`{"trace":5}`:      "up.trace: must be a string",
		fmt.Sprintf(`{"trace":%q}`, filepath.Join(dir, "none")):               "up.trace: open " + filepath.Join(dir, "none") + ": no such file",
		fmt.Sprintf(`{"trace":%q}`, write("bad", "1\ntwo\n")):                 "up.trace: " + filepath.Join(dir, "bad") + `:2: "two" is not a whole number of milliseconds`,
		fmt.Sprintf(`{"trace":%q}`, dir):                                      "up.trace: " + dir + ": not a file",
		fmt.Sprintf(`{"trace":%q,"rate_kbps":100}`, good):                     "up: give rate_kbps or trace, not both",
		fmt.Sprintf(`{"trace":%q}`, write("fast", strings.Repeat("1\n", 42))): "up.trace: must offer at most 500000 kbit/s in the mean, found 504000",
		fmt.Sprintf(`{"trace":%q}`, write("empty", "")):                       filepath.Join(dir, "empty") + ":1: no opportunities",
		fmt.Sprintf(`{"trace":%q}`, write("capture", "\xd4\xff")):             `:1: "\xd4\xff" is not a whole number`,
	} {
		if _, err := ParseRequest([]byte(request(up))); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s:\n got  %v\n want %s", up, err, message)
		}
	}
}
