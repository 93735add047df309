package connlog

import (
	"encoding/json"
	"errors"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mplab/internal/jsonlog"
	"mplab/internal/testkit"
	"mplab/mpflex/internal/transport/session"
)

// TestRoundTrip: times and addresses of a record are the same after reading. An invalid
// address is "".
func TestRoundTrip(t *testing.T) {
	before := Connection{
		Event: "connection", Opened: Moment{time.Unix(1_780_000_000, 123_456_000)},
		Src: Endpoint{netip.MustParseAddrPort("[2001:db8::1]:443")}, Dst: Endpoint{netip.MustParseAddrPort("192.0.2.1:80")},
	}
	b, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"opened":1780000000.123456`, `"src":"[2001:db8::1]:443"`, `"local":""`} {
		if !strings.Contains(string(b), part) {
			t.Errorf("%s is missing in %s", part, b)
		}
	}
	var after Connection
	if err := json.Unmarshal(b, &after); err != nil || !after.Opened.Equal(before.Opened.Time) || after.Src != before.Src || after.Dst != before.Dst || after.Local.IsValid() {
		t.Errorf("%+v, %v", after, err)
	}
	for _, bad := range []string{`{"opened":"now"}`, `{"src":"host:80"}`} {
		if err := json.Unmarshal([]byte(bad), &after); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

// TestEventsOfASession: the end of a session and events of its paths have records of
// different kinds.
func TestEventsOfASession(t *testing.T) {
	at := time.Unix(1_780_000_000, 0)
	over := OfSession(session.Event{Time: at, What: session.Over, Streams: 3, Err: errors.New("why")}, "id", "alice")
	if over != (SessionEnd{Event: "session", T: 1_780_000_000, Session: "id", Client: "alice", What: "ended", Streams: 3, Error: "why"}) {
		t.Errorf("%+v", over)
	}
	path := OfSession(session.Event{Time: at, What: session.Stalled, Path: 1, Name: "wlan0", Incarnation: 2, Suppressed: 4}, "id", "")
	if path != (PathEvent{Event: "path", T: 1_780_000_000, Session: "id", What: session.Stalled, Path: 1, Interface: "wlan0", Incarnation: 2, Suppressed: 4}) {
		t.Errorf("%+v", path)
	}
}

// TestListening: the first failure of a listener is logged at once, further ones together.
func TestListening(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log.jsonl")
	synctest.Test(t, func(t *testing.T) {
		log, err := jsonlog.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close() //nolint:errcheck // the records are read back
		failed := Listening(log, Endpoint{netip.MustParseAddrPort("127.0.0.1:80")})
		for range 100 {
			failed(errors.New("no descriptors"))
			time.Sleep(time.Second)
		}
	})
	var counts []uint64
	for _, r := range testkit.Records[Listener](t, file, "listener") {
		counts = append(counts, r.Failed)
		if r.Error != "no descriptors" || r.Address.String() != "127.0.0.1:80" {
			t.Errorf("%+v", r)
		}
	}
	if len(counts) != 4 || counts[0] != 1 || counts[1] != 30 || counts[2] != 30 || counts[3] != 30 {
		t.Errorf("failures per record: %v", counts)
	}
}
