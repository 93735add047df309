package main

import (
	"os"
	"strings"
	"testing"

	"mplab/analysis/mptrace/internal/fixture"
)

// read returns a file from the directory of a lab.
func read(t *testing.T, dir, name string) string {
	t.Helper()
	return strings.TrimSpace(fixture.Read(t, dir, name))
}

// TestDrain: the file contains all packets that were on the interface before
// SIGTERM, and each packet of the loopback interface once.
func TestDrain(t *testing.T) {
	dir := lab(t, `
capture lo
as server 127.0.0.1:4000 >server.out & S=$!
listening
PLAIN=1 as client 127.0.0.1:4000 2000000 1000000
wait $S
finish
`)
	files := captures(t, dir)
	noPayload(t, files)
	r := result(t, files...)
	up, down := &r.Directions[0], &r.Directions[1]
	if c, s := r.Connections[0], r.Subflows[0]; c.BytesUp != 2_000_000+helloSize || c.BytesDown != 1_000_000+helloSize ||
		c.Closed != "fin" || up.Segments+down.Segments != r.Files[0].TCP || 2*up.RetransmittedBytes > up.Bytes || s.Interface != "lo" {
		t.Errorf("%+v\n%+v\n%+v", c, s, r.Directions)
	}
	if events := read(t, dir, "lo.events"); !strings.HasPrefix(events, "{\"event\":\"ready\"}\n{\"event\":\"done\",\"packets\":") ||
		!strings.HasSuffix(events, `"dropped":0}`) {
		t.Error(events)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestPayload(t *testing.T) {
	dir := lab(t, `
MPTRACE_TEST_ROLE=mptrace "$SELF" capture -i lo -w phone-lo.pcapng --payload >lo.events & PIDS=$!
for i in $(seq 100); do grep -q ready lo.events && break; sleep 0.05; done
as server 127.0.0.1:4000 >server.out & S=$!
listening
PLAIN=1 as client 127.0.0.1:4000 2000 0
wait $S
finish
`)
	if b := read(t, dir, "phone-lo.pcapng"); strings.Count(b, secret) < 2000/len(secret) {
		t.Error("the payload is not there")
	}
}

// TestName: the file contains the given name of a phone's interface.
func TestName(t *testing.T) {
	dir := lab(t, `
MPTRACE_TEST_ROLE=mptrace "$SELF" capture -i lo --name rmnet0 -w phone-rmnet0.pcapng >lo.events & PIDS=$!
for i in $(seq 100); do grep -q ready lo.events && break; sleep 0.05; done
as server 127.0.0.1:4000 >server.out & S=$!
listening
PLAIN=1 as client 127.0.0.1:4000 2000 0
wait $S
finish
`)
	if r := result(t, captures(t, dir)...); len(r.Subflows) != 1 || r.Subflows[0].Interface != "rmnet0" {
		t.Errorf("%+v", r.Subflows)
	}
}

func TestFullDisk(t *testing.T) {
	dir := lab(t, `
mkdir small
mount -t tmpfs -o size=64k tmpfs small
MPTRACE_TEST_ROLE=mptrace "$SELF" capture -i lo -w small/phone-lo.pcapng >lo.events 2>error & P=$!
for i in $(seq 100); do grep -q ready lo.events && break; sleep 0.05; done
as server 127.0.0.1:4000 >server.out & S=$!
listening
PLAIN=1 as client 127.0.0.1:4000 60000000 0
wait $S
code=0; wait $P || code=$?
echo $code >code
cp small/phone-lo.pcapng .
`)
	if code := read(t, dir, "code"); code != "1" {
		t.Errorf("exit code %s", code)
	}
	if text := read(t, dir, "error"); strings.Count(text, "\n") != 0 || !strings.Contains(text, "small/phone-lo.pcapng: no space left on device") {
		t.Error(text)
	}
	if r := result(t, captures(t, dir)...); r.Files[0].Partial || r.Files[0].Packets == 0 {
		t.Errorf("%+v", r.Files)
	}
}

func TestRefusals(t *testing.T) {
	dir := lab(t, `
try() { name=$1; shift; code=0; MPTRACE_TEST_ROLE=mptrace "$@" >$name.out 2>$name || code=$?; echo " $code" >>$name; }
echo mine >old.pcapng
try exists "$SELF" capture -i lo -w old.pcapng
try interface "$SELF" capture -i wlan7 -w new.pcapng
try flag "$SELF" capture -i lo
try permission setpriv --bounding-set=-net_raw --inh-caps=-net_raw "$SELF" capture -i lo -w new.pcapng
ls >files
`)
	for name, want := range map[string]string{
		"exists":     "mptrace: old.pcapng: the file exists already; raw captures are written once\n 2",
		"interface":  "mptrace: interface wlan7: no such interface; there are lo\n 2",
		"flag":       "mptrace: required flag(s) \"write\" not set\n 2",
		"permission": "mptrace: no permission to capture: run as root, in a network namespace of your own, or after `setcap cap_net_raw+ep` on this program\n 3",
		"old.pcapng": "mine",
	} {
		if got := read(t, dir, name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	if strings.Contains(read(t, dir, "files"), "new.pcapng") {
		t.Error("a file was made in vain")
	}
}
