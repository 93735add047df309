package logger

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mplab/internal/ifaces"
	"mplab/phonelog/internal/collector/lines"
	"mplab/phonelog/internal/logger/record"
	"mplab/phonelog/internal/logger/store"
)

func ptr[T any](v T) *T { return &v }

func recorderIn(t *testing.T, limits store.Limits, hash []byte, cells bool) (*recorder, string) {
	t.Helper()
	dir := t.TempDir()
	s, err := store.Open(dir, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return newRecorder(s, record.Steps{SignalDB: 2}, hash, cells), dir
}

var roomy = store.Limits{Bytes: 1 << 20, Age: time.Hour, Total: 1 << 30}

type line struct {
	Kind, Why, Run, Problem, SSID string
	SSIDHash                      string `json:"ssid_hash"`
	BSSID                         string
	CellID                        *int64 `json:"cell_id"`
	N                             int
	RSSI                          float64 `json:"rssi_dbm"`
	Step                          float64 `json:"step_s"`
}

// written returns the lines of the current file, checked by the schema.
func written(t *testing.T, dir string) (all []line) {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.jsonl")
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if bad := lines.New(0).Check(data); bad != nil {
		t.Errorf("%v\n%s", bad, data)
	}
	for text := range strings.Lines(string(data)) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	return all
}

func short(all []line) string {
	var words []string
	for _, l := range all {
		words = append(words, strings.TrimSuffix(fmt.Sprint(l.N, " ", l.Kind, " ", l.Why), " "))
	}
	return strings.Join(words, ", ")
}

func wifi(rssi float64) *record.WiFi {
	return &record.WiFi{Source: "test", Connected: true, SSID: "Attic", BSSID: "3c:37:12:aa:bb:01", RSSI: ptr(rssi)}
}

func TestChangesOnly(t *testing.T) {
	r, dir := recorderIn(t, roomy, nil, true)
	for _, rssi := range []float64{-50, -50, -51, -49, -52, -50.5, -50} {
		r.see(wifi(rssi))
	}
	all := written(t, dir)
	if got := short(all); got != "1 wifi first, 2 wifi change, 3 wifi change" || all[1].RSSI != -52 || all[2].RSSI != -50 {
		t.Errorf("%s: %+v", got, all)
	}
	if seen := r.now(record.KindWiFi).(*record.WiFi); *seen.RSSI != -50 {
		t.Errorf("%+v", seen)
	}
	gone := &record.Interface{Name: "tun0", Addresses: []string{}}
	r.see(gone) // it was never recorded
	r.see(&record.Interface{Name: "tun0", Present: true, Addresses: []string{}}, gone)
	r.see(gone)
	if got := short(written(t, dir)[3:]); got != "4 interface first, 5 interface change" {
		t.Error(got)
	}
	if len(r.last) != 1 || len(r.seen) != 1 {
		t.Errorf("what is gone is kept: %v", r.last)
	}
}

// TestEachFileCanBeReadAlone checks that each file starts with all current states.
func TestEachFileCanBeReadAlone(t *testing.T) {
	r, dir := recorderIn(t, store.Limits{Bytes: 300, Age: time.Hour, Total: 1 << 20}, nil, true)
	r.see(wifi(-50), &record.Battery{Source: "test", Level: ptr(50.)})
	r.see(wifi(-60))
	all := written(t, dir)
	if got := short(all); got != "3 battery repeat, 4 wifi repeat, 5 wifi change" || all[1].RSSI != -50 || all[2].RSSI != -60 {
		t.Errorf("%s", got)
	}
	if waiting := len(r.store.Waiting()); waiting != 1 {
		t.Errorf("%d wait", waiting)
	}
}

func TestWhatIsNotToBeRecorded(t *testing.T) {
	r, dir := recorderIn(t, roomy, []byte("a key of a study"), false)
	r.see(wifi(-50), &record.Cell{Type: "LTE", CellID: ptr(int64(7)), Area: ptr(1), PCI: ptr(2)})
	other, otherDir := recorderIn(t, roomy, []byte("a key of another"), true)
	other.see(wifi(-50), &record.Cell{Type: "LTE", CellID: ptr(int64(7))})
	a, b := written(t, dir), written(t, otherDir)
	if a[0].SSID != "" || a[0].BSSID != "" || len(a[0].SSIDHash) != 16 || a[0].SSIDHash == b[0].SSIDHash || a[1].CellID != nil || *b[1].CellID != 7 {
		t.Errorf("%+v\n%+v", a, b)
	}
	data, err := json.Marshal(r.all())
	if err != nil || strings.Contains(string(data), "Attic") || strings.Contains(string(data), "3c:37") {
		t.Errorf("the status tells it: %s, %v", data, err)
	}
	if digest([]byte("k"), "ssid", "x") == digest([]byte("k"), "bssid", "x") || digest([]byte("k"), "ssid", "") != "" {
		t.Error("a name as SSID and as BSSID")
	}
}

func TestProblemsAreSaidOnce(t *testing.T) {
	r, dir := recorderIn(t, roomy, nil, true)
	for range 3 {
		r.say("wifi", errors.New("no\nservice\xff"))
		r.say("cell", errors.New("no\nservice\xff"))
	}
	r.say("wifi", errors.New(strings.Repeat("é", 5000)))
	for i := range 200 {
		r.say("flood", fmt.Errorf("problem %d", i))
	}
	all := written(t, dir)
	if len(all) != saidMost || all[0].Problem != "no service�" || all[1].Problem != all[0].Problem || len([]rune(all[2].Problem)) != problemMost+1 {
		t.Errorf("%d: %+v", len(all), all[:3])
	}
}

func TestTheClockIsSet(t *testing.T) {
	r, dir := recorderIn(t, roomy, nil, true)
	r.event(&record.Stop{Reason: "x"})
	r.tick()
	r.offset -= time.Hour // as if the clock had been an hour behind
	r.tick()
	r.tick()
	all := written(t, dir)
	if got := short(all); got != "1 stop, 2 clock" || all[1].Step < 3599 || all[1].Step > 3601 {
		t.Errorf("%s, %+v", got, all)
	}
}

func TestLostRecordsAreCounted(t *testing.T) {
	r, dir := recorderIn(t, roomy, nil, true)
	r.see(wifi(-50))
	if err := r.rotate(); err != nil {
		t.Fatal(err)
	}
	if err := r.store.Rotate(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil { // no more writes are possible
		t.Fatal(err)
	}
	r.see(wifi(-60))
	r.see(wifi(-70))
	if n, lost := r.counts(); n != 4 || lost != 2 {
		t.Errorf("%d numbered, %d lost", n, lost)
	}
}

func TestConditions(t *testing.T) {
	usable := []ifaces.Interface{{Name: "rmnet0"}, {Name: "wlan1"}, {Name: "wlan0"}}
	charged := &record.Battery{Plugged: "usb", Level: ptr(70.)}
	c := ConditionsOf(usable, []string{"wlan*"}, nil, charged)
	if c.WiFi != "wlan1" || !*c.Charging || *c.Level != 70 {
		t.Errorf("%+v", c)
	}
	if c = ConditionsOf(usable, []string{"wlan0", "wlan*"}, wifi(-50), nil); c.WiFi != "wlan0" || c.Charging != nil || c.Level != nil {
		t.Errorf("%+v", c)
	}
	if c = ConditionsOf(usable, []string{"wlan*"}, &record.WiFi{}, nil); c.WiFi != "" {
		t.Errorf("WiFi is not connected: %+v", c)
	}
	if c = ConditionsOf(usable[:1], []string{"wlan*"}, wifi(-50), nil); c.WiFi != "" {
		t.Errorf("its interface has no address: %+v", c)
	}
}
