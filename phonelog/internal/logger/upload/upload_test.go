package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mplab/internal/strictjson"
	"mplab/internal/testkit"
	"mplab/phonelog/internal/config"
	"mplab/phonelog/internal/logger/store"
)

// server answers uploads as configured, and keeps acknowledged ones.
type server struct {
	*httptest.Server

	mu     sync.Mutex // guards the following fields
	status int
	header map[string]string
	got    []string // IDs of all requests
	kept   []string // IDs of acknowledged requests
}

func serve(t *testing.T) *server {
	s := &server{status: http.StatusCreated}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer token-of-the-phone" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		id := strings.TrimPrefix(r.URL.Path, "/v1/batches/phone/")
		s.got = append(s.got, id)
		for name, value := range s.header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(s.status)
		fmt.Fprintln(w, `{"error":"so it is"}`)
		if s.status < 300 {
			s.kept = append(s.kept, id)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) answer(status int, header ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.header = status, map[string]string{}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		s.header[name] = value
	}
}

func (s *server) seen() (got, kept int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.got), len(s.kept)
}

func uploader(t *testing.T, url string, batches int, conditions func() Conditions, when ...string) (*Uploader, *store.Store) {
	t.Helper()
	s, err := store.Open(t.TempDir(), store.Limits{Bytes: 1 << 20, Age: time.Hour, Total: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for i := range batches {
		if err := errors.Join(s.Append([]byte(fmt.Sprintf("{\"n\":%d}\n", i))), s.Rotate()); err != nil {
			t.Fatal(err)
		}
	}
	u, err := New("phone", config.LoggerUpload{URL: url, When: &when, EveryS: 0.05, TimeoutS: 20, BackoffS: 0.05, BackoffMostS: 0.2, Token: "token-of-the-phone"}, s, conditions)
	if err != nil {
		t.Fatal(err)
	}
	return u, s
}

func anyway() Conditions { return Conditions{} }

func ptr[T any](v T) *T { return &v }

func TestWhen(t *testing.T) {
	u, _ := uploader(t, "http://127.0.0.1:1", 0, anyway, config.WhenWiFi, config.WhenCharging)
	u.config.BatteryPercent = 50
	for _, c := range []struct {
		c    Conditions
		want string
	}{
		{Conditions{}, "there is no WiFi"},
		{Conditions{WiFi: "wlan0"}, "it is not known whether the phone is charged"},
		{Conditions{WiFi: "wlan0", Charging: ptr(false)}, "the phone is not charged"},
		{Conditions{Charging: ptr(true), Level: ptr(80.)}, "there is no WiFi"},
		{Conditions{WiFi: "wlan0", Charging: ptr(true)}, "the level of the battery is not known"},
		{Conditions{WiFi: "wlan0", Charging: ptr(true), Level: ptr(49.)}, "the battery has 49 %, less than 50 %"},
		{Conditions{WiFi: "wlan0", Charging: ptr(true), Level: ptr(50.)}, ""},
	} {
		if got := u.blocked(c.c); got != c.want {
			t.Errorf("%+v: %q, want %q", c.c, got, c.want)
		}
	}
	free, _ := uploader(t, "http://127.0.0.1:1", 0, anyway)
	if got := free.blocked(Conditions{}); got != "" {
		t.Errorf("without rules: %q", got)
	}
}

// TestSendsWhileItMay: it waits for its conditions, sends oldest first, and
// stops when they end.
func TestSendsWhileItMay(t *testing.T) {
	s := serve(t)
	var mu sync.Mutex
	charging, left := false, 2
	u, files := uploader(t, s.URL, 4, func() Conditions {
		mu.Lock()
		defer mu.Unlock()
		if charging {
			left--
		}
		return Conditions{Charging: ptr(charging && left >= 0)}
	}, config.WhenCharging)
	if err := u.Send(t.Context(), false); err != nil {
		t.Error(err)
	}
	if got, _ := s.seen(); got != 0 || u.Status().State != "waits: the phone is not charged" {
		t.Errorf("%d, %+v", got, u.Status())
	}
	charging = true
	if err := u.Send(t.Context(), false); err != nil {
		t.Error(err)
	}
	if !slices.IsSorted(s.kept) || len(s.kept) != 2 || len(files.Waiting()) != 2 || !strings.HasPrefix(u.Status().State, "waits") {
		t.Errorf("%v, %d wait, %+v", s.kept, len(files.Waiting()), u.Status())
	}
	if err := u.Send(t.Context(), true); err != nil || len(files.Waiting()) != 0 {
		t.Errorf("forced: %v, %d wait", err, len(files.Waiting()))
	}
	if st := u.Status(); st.State != "idle" || st.Sent != 4 {
		t.Errorf("%+v", st)
	}
}

func TestAnswers(t *testing.T) {
	for status, want := range map[int]store.Status{200: {Sent: 1}, 201: {Sent: 1}, 400: {Refused: 1}, 409: {Refused: 1}, 413: {Refused: 1}, 415: {Refused: 1}, 422: {Refused: 1},
		401: {Waiting: 1}, 403: {Waiting: 1}, 404: {Waiting: 1}, 301: {Waiting: 1}, 429: {Waiting: 1}, 500: {Waiting: 1}, 503: {Waiting: 1}, 507: {Waiting: 1}} {
		s := serve(t)
		s.answer(status, "Retry-After: 77777777", "Location: /elsewhere")
		u, files := uploader(t, s.URL, 1, anyway)
		err := u.Send(t.Context(), false)
		st := files.Status()
		if st.Sent != want.Sent || st.Refused != want.Refused || st.Waiting != want.Waiting || (err != nil) != (want.Waiting == 1) {
			t.Errorf("%d: %+v, %v", status, st, err)
		}
		us := u.Status()
		if want.Waiting == 1 && (us.Failures != 1 || us.RetryS <= 0 || us.RetryS > 0.2 || !strings.Contains(us.Error, "so it is") && status > 400) {
			t.Errorf("%d: %+v", status, us)
		}
		if got, _ := s.seen(); got != 1 {
			t.Errorf("%d: %d requests", status, got)
		}
	}
}

// TestBackoff: after failures it waits increasingly long, and sends a batch
// again with the same ID.
func TestBackoff(t *testing.T) {
	s := serve(t)
	s.answer(http.StatusInsufficientStorage)
	u, files := uploader(t, s.URL, 2, anyway)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	var mu sync.Mutex
	said := map[string]int{}
	go func() {
		defer close(ended)
		u.Run(ctx, func(err error) { mu.Lock(); said[err.Error()]++; mu.Unlock() })
	}()
	testkit.Eventually(t, "several tries", func() bool { got, _ := s.seen(); return got >= 4 })
	if st := u.Status(); st.Failures < 3 || len(files.Waiting()) != 2 {
		t.Errorf("%+v, %d wait", st, len(files.Waiting()))
	}
	s.mu.Lock()
	same := slices.Compact(slices.Clone(s.got))
	s.mu.Unlock()
	if len(same) != 1 {
		t.Errorf("a batch has several ids: %v", same)
	}
	s.answer(http.StatusCreated)
	testkit.Eventually(t, "all sent", func() bool { return len(files.Waiting()) == 0 })
	if st := u.Status(); st.Failures != 0 || st.Error != "" {
		t.Errorf("%+v", st)
	}
	stop()
	<-ended
	mu.Lock()
	defer mu.Unlock()
	if len(said) == 0 {
		t.Error("nothing was said")
	}
}

func TestPausesDoubleWithinTheirBound(t *testing.T) {
	u, _ := uploader(t, "http://127.0.0.1:1", 0, anyway)
	u.config.BackoffS, u.config.BackoffMostS = 10, 1000
	for i := range 100 {
		u.fail(errors.New("no"))
		pause := time.Until(u.retry).Seconds()
		whole := min(10*float64(uint64(1)<<min(i, 20)), 1000)
		if pause > whole || pause < whole/2-5 {
			t.Errorf("after %d failures %.1f s, want about %.0f", i+1, pause, whole)
		}
	}
	u.status.Failures = 0
	u.fail(&laterError{"429", 500 * time.Second})
	if pause := time.Until(u.retry).Seconds(); pause < 490 || pause > 500 {
		t.Errorf("asked for 500 s: %.1f", pause)
	}
}

func TestDamagedFile(t *testing.T) {
	s := serve(t)
	u, files := uploader(t, s.URL, 0, anyway)
	_ = files.Close()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "00000001.jsonl.gz"), []byte("no gzip"), 0o600); err != nil {
		t.Fatal(err)
	}
	damaged, err := store.Open(dir, store.Limits{Bytes: 1 << 20, Age: time.Hour, Total: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer damaged.Close()
	u.store = damaged
	if err := u.Send(t.Context(), false); err == nil {
		t.Error("it is not said")
	}
	if st := damaged.Status(); st.Refused != 1 || st.Waiting != 0 {
		t.Errorf("it is in the way of others: %+v", st)
	}
}

func TestAuthorities(t *testing.T) {
	if _, err := authorities(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	nonsense := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(nonsense, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := authorities(nonsense); err == nil || !strings.Contains(err.Error(), "holds no certificate") {
		t.Errorf("%v", err)
	}
}

func TestMyIPAndConnect(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/myip" || r.Host != "a.name.that.nobody.resolves.invalid" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		fmt.Fprintln(w, "192.0.2.9")
	}))
	defer s.Close()
	u, _ := uploader(t, "http://a.name.that.nobody.resolves.invalid", 0, anyway)
	if _, err := u.MyIP(t.Context(), ""); err == nil {
		t.Error("the name was resolved")
	}
	u.config.Connect = strictjson.Address{AddrPort: netip.MustParseAddrPort(s.Listener.Addr().String())}
	a, err := u.MyIP(t.Context(), "lo")
	if err != nil || a.Address.String() != "192.0.2.9" || a.Connect <= 0 || a.RTT <= 0 {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := u.MyIP(t.Context(), "nothing0"); err == nil {
		t.Error("over an interface that is not there")
	}
}
