package source

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mdlayher/wifi"

	"mplab/phonelog/internal/logger/record"
)

// program adds a program to the path: a shell script.
func program(t *testing.T, dir, name, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func inPath(t *testing.T) string {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":/bin:/usr/bin")
	return dir
}

func TestTheFirstWayThatWorks(t *testing.T) {
	good := map[string]bool{}
	asked := ""
	w := func(name string) way {
		return way{name, func(context.Context) ([]record.State, error) {
			asked += name
			if !good[name] {
				return nil, errors.New("not today")
			}
			return []record.State{&record.WiFi{}}, nil
		}}
	}
	f := &first{ways: []way{w("a"), w("b"), w("c")}}
	read := func(wantFrom, wantAsked string) {
		t.Helper()
		asked = ""
		_, from, err := f.Read(t.Context())
		if from != wantFrom || asked != wantAsked || (err == nil) != (wantFrom != "") {
			t.Errorf("from %q after asking %q (%v), want %q, %q", from, asked, err, wantFrom, wantAsked)
		}
	}
	read("", "abc")
	good["b"] = true
	read("b", "ab")
	good["c"] = true
	read("b", "b") // the one that worked last
	good["b"], good["a"] = false, true
	read("c", "bc")
	good["c"] = false
	read("a", "ca")
}

// TestAWayThatKnowsThatNothingIsThere checks that a way without data is used only if no
// later way has data.
func TestAWayThatKnowsThatNothingIsThere(t *testing.T) {
	partly := way{"kernel", func(context.Context) ([]record.State, error) { return []record.State{&record.WiFi{}}, errPartly }}
	fails := way{"android", func(context.Context) ([]record.State, error) { return nil, errors.New("no") }}
	knows := way{"android", func(context.Context) ([]record.State, error) { return []record.State{&record.WiFi{}}, nil }}
	if _, from, err := (&first{ways: []way{partly, fails}}).Read(t.Context()); from != "kernel" || err != nil {
		t.Errorf("%s, %v", from, err)
	}
	if _, from, err := (&first{ways: []way{partly, knows}}).Read(t.Context()); from != "android" || err != nil {
		t.Errorf("%s, %v", from, err)
	}
}

func TestCommands(t *testing.T) {
	dir := inPath(t)
	program(t, dir, "says", `echo "$@"; echo "$LC_ALL"`)
	program(t, dir, "fails", "echo why not >&2; exit 3")
	program(t, dir, "floods", "head -c 40000000 /dev/zero")
	program(t, dir, "hangs", "sleep 1000 & echo begun; sleep 1000")
	if text, err := run(t.Context(), "says", "a b", "c"); text != "a b c\nC\n" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := run(t.Context(), "fails"); err == nil || !strings.Contains(err.Error(), "exit status 3: \"why not\"") {
		t.Errorf("%v", err)
	}
	if _, err := run(t.Context(), "is-not-there"); err == nil || err.Error() != "this system does not have it" {
		t.Errorf("%v", err)
	}
	if text, err := run(t.Context(), "floods"); len(text) != outputMost || err != nil {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	ended := make(chan error, 1)
	go func() { _, err := run(ctx, "hangs"); ended <- err }()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "no answer") {
			t.Errorf("%v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("a command that hangs is waited for")
	}
}

func TestProperties(t *testing.T) {
	dir := inPath(t)
	if got := Properties(t.Context(), "a", "b"); strings.Join(got, "|") != "|" {
		t.Errorf("without Android: %q", got)
	}
	program(t, dir, "getprop", `test "$1" = ro.product.model && echo "Pixel 7"`+"\nexit 0")
	if got := Properties(t.Context(), "ro.product.model", "b"); got[0] != "Pixel 7" || got[1] != "" {
		t.Errorf("%q", got)
	}
}

// TestWiFiByCommands reads Android's WiFi by its commands: the cheap one, the expensive
// one for Android 10, and neither.
func TestWiFiByCommands(t *testing.T) {
	dir := inPath(t)
	source := &first{ways: NewWiFi().(*first).ways[1:3]} // only the ways of Android
	golden, err := filepath.Abs("../android/testdata")
	if err != nil {
		t.Fatal(err)
	}
	read := func() (*record.WiFi, string, error) {
		states, from, err := source.Read(t.Context())
		if err != nil {
			return nil, from, err
		}
		return states[0].(*record.WiFi), from, nil
	}
	if _, _, err := read(); err == nil || !strings.Contains(err.Error(), "cmd wifi status: this system does not have it") {
		t.Errorf("%v", err)
	}
	program(t, dir, "cmd", "echo 'Unknown command: status' >&2; exit 255")
	program(t, dir, "dumpsys", "test $1 = wifi && cat "+golden+"/wifi-10-dumpsys.txt")
	if w, from, err := read(); err != nil || from != "dumpsys wifi" || w.SSID != "Attic, upstairs" || w.Source != from {
		t.Errorf("%+v, %s, %v", w, from, err)
	}
	program(t, dir, "cmd", `test "$*" = "wifi status" && cat `+golden+"/wifi-11-cmd.txt")
	source.last = 0
	if w, from, err := read(); err != nil || from != "cmd wifi status" || *w.RSSI != -61 {
		t.Errorf("%+v, %s, %v", w, from, err)
	}
}

func TestDescriptionOfNL80211(t *testing.T) {
	ap := net.HardwareAddr{0x3c, 0x37, 0x12, 0xaa, 0xbb, 1}
	w := describe(&wifi.Interface{Name: "wlan0"}, &wifi.BSS{SSID: "Attic\xff", BSSID: ap, Frequency: 5180},
		[]*wifi.StationInfo{{HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 1}, Signal: -20}, {HardwareAddr: ap, Signal: -61, TransmitBitrate: 390e6}})
	if w.SSID != "Attic�" || w.BSSID != "3c:37:12:aa:bb:01" || *w.RSSI != -61 || *w.TX != 390 || w.RX != nil || w.Frequency != 5180 || !w.Connected || !*w.Enabled {
		t.Errorf("%+v", w)
	}
	if w := describe(&wifi.Interface{Name: "wlan0"}, &wifi.BSS{}, nil); w.BSSID != "" || w.RSSI != nil {
		t.Errorf("%+v", w)
	}
}

const wireless = `Inter-| sta-|   Quality        |   Discarded packets               | Missed | WE
 face | tus | link level noise |  nwid  crypt   frag  retry   misc | beacon | 22
`

func TestWireless(t *testing.T) {
	w, err := parseWireless(wireless + " wlan0: 0000   54.  -56.  -256        0      0      0      0      0        0\n")
	if err != nil || w.Interface != "wlan0" || !w.Connected || *w.RSSI != -56 {
		t.Errorf("%+v, %v", w, err)
	}
	if w, err = parseWireless(wireless + " wlan0: 0000    0.  -256.  -256        0      0      0      0      0        0\n"); err != nil || w.Connected || w.RSSI != nil {
		t.Errorf("%+v, %v", w, err)
	}
	if _, err = parseWireless(wireless); err == nil {
		t.Error("no interface")
	}
	if _, err = parseWireless(" wlan0: 0000 x y z\n"); err == nil {
		t.Error("nonsense")
	}
}

func FuzzWireless(f *testing.F) {
	f.Add(wireless + " wlan0: 0000   54.  -56.  -256        0      0      0      0      0        0\n")
	f.Fuzz(func(t *testing.T, text string) {
		if w, err := parseWireless(text); err == nil && (w.Interface == "" || w.RSSI != nil && *w.RSSI >= 0) {
			t.Errorf("%+v", w)
		}
	})
}

func TestPowerSupplies(t *testing.T) {
	root := t.TempDir()
	supply := func(name string, values map[string]string) {
		if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
		for file, text := range values {
			if err := os.WriteFile(filepath.Join(root, name, file), []byte(text+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	read := func() (*record.Battery, error) {
		states, err := readSupplies(root)
		if err != nil {
			return nil, err
		}
		return states[0].(*record.Battery), nil
	}
	if _, err := read(); !errors.Is(err, errNoBattery) {
		t.Errorf("%v", err)
	}
	supply("pen", map[string]string{"type": "Battery", "scope": "Device", "capacity": "1"})
	supply("usb", map[string]string{"type": "USB", "online": "0"})
	if _, err := read(); !errors.Is(err, errNoBattery) {
		t.Errorf("%v", err)
	}
	supply("battery", map[string]string{"type": "Battery", "capacity": "85", "status": "Not charging", "temp": "285", "voltage_now": "4315000", "present": "1"})
	b, err := read()
	if err != nil || *b.Level != 85 || b.Status != "not_charging" || *b.Temperature != 28.5 || *b.Voltage != 4.315 || b.Plugged != "none" {
		t.Errorf("%+v, %v", b, err)
	}
	supply("usb", map[string]string{"online": "1"})
	supply("wireless", map[string]string{"type": "Wireless", "online": "0"})
	if b, err = read(); err != nil || b.Plugged != "usb" || !*b.Charging() {
		t.Errorf("%+v, %v", b, err)
	}
	supply("battery", map[string]string{"capacity": "300", "status": "Melting"})
	if _, err = read(); !errors.Is(err, errNoBattery) {
		t.Errorf("%v", err)
	}
	dir := inPath(t)
	program(t, dir, "dumpsys", "echo '  AC powered: true'; echo '  level: 40'; echo '  scale: 100'")
	states, from, err := NewBattery(root).Read(t.Context())
	if err != nil || from != "dumpsys battery" || *states[0].(*record.Battery).Level != 40 {
		t.Errorf("%v, %s, %v", states, from, err)
	}
}

func TestCellAndLocationByCommands(t *testing.T) {
	dir := inPath(t)
	golden, err := filepath.Abs("../android/testdata")
	if err != nil {
		t.Fatal(err)
	}
	program(t, dir, "dumpsys", "case $1 in telephony.registry) cat "+golden+"/cell-11-nsa-two-slots.txt;; location) cat "+golden+"/location-12.txt;; esac")
	states, from, err := NewCell(30).Read(t.Context())
	if err != nil || from != "dumpsys telephony.registry" || len(states) != 2 || states[0].(*record.Cell).Type != "LTE" || states[1].Key() != "cell 1" {
		t.Errorf("%v, %s, %v", states, from, err)
	}
	states, from, err = NewLocation().Read(t.Context())
	if err != nil || from != "dumpsys location" || len(states) != 1 || states[0].Key() != "location fused" {
		t.Errorf("%v, %s, %v", states, from, err)
	}
}
