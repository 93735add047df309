package workload

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"mplab/bench/mpflex/origin"
	"mplab/internal/netx"
)

// loopback is an environment whose origin is on this machine, without links.
type loopback struct {
	address netip.AddrPort
	wrap    func(dial int, conn net.Conn) (net.Conn, error) // wraps each connection, counted from 1; nil: no wrapping
	kill    error

	mu       sync.Mutex
	dials    int // guarded by mu, with the following fields
	open     int
	mostOpen int
	observed int
	calls    []string
}

func newLoopback(t *testing.T) *loopback {
	t.Helper()
	free, err := netx.Options{}.Listen(netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	e := &loopback{address: netx.AddrPort(free.Addr())}
	_ = free.Close()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- origin.Serve(ctx, []origin.Listener{{Address: e.address}}, func() { close(ready) }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-ready
	return e
}

func (e *loopback) Dial(ctx context.Context) (net.Conn, error) {
	e.mu.Lock()
	e.dials++
	dial := e.dials
	e.open++
	e.mostOpen = max(e.mostOpen, e.open)
	e.mu.Unlock()
	conn, err := netx.Options{}.Dial(ctx, e.address)
	if err != nil {
		return nil, err
	}
	counted := &countedConn{Conn: conn, env: e}
	if e.wrap == nil {
		return counted, nil
	}
	return e.wrap(dial, counted)
}

type countedConn struct {
	net.Conn
	env *loopback
}

func (c *countedConn) Close() error {
	c.env.mu.Lock()
	c.env.open--
	c.env.mu.Unlock()
	return c.Conn.Close()
}

func (e *loopback) call(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, name)
}

func (e *loopback) KillWiFi() error   { e.call("kill"); return e.kill }
func (e *loopback) ReviveWiFi() error { e.call("revive"); return nil }
func (e *loopback) Observe(net.Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.observed++
}
func (e *loopback) Seed() uint64 { return 42 }

func must(t *testing.T, text string) Workload {
	t.Helper()
	w, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestFilesAndBundles(t *testing.T) {
	for text, want := range map[string]struct{ dials, most, bytes int }{
		"f:1000": {1, 1, 1000}, "up/f:300000": {1, 1, 300_000}, "s:5:20000": {5, 1, 100_000}, "c:12:4:50000": {12, 4, 600_000}, "up/c:6:6:1000": {6, 6, 6000},
	} {
		e := newLoopback(t)
		samples := must(t, text).Run(t.Context(), e)
		if len(samples) != 1 || samples[0].Error != "" || samples[0].Bytes != want.bytes || samples[0].LimitMs <= 0 || samples[0].Ms <= 0 {
			t.Errorf("%s: %+v", text, samples)
		}
		if e.dials != want.dials || e.mostOpen > want.most || e.open != 0 || e.observed != 1 {
			t.Errorf("%s: %d connections, %d at a time, %d left open, %d observed", text, e.dials, e.mostOpen, e.open, e.observed)
		}
		if first := samples[0].FirstByteMs; strings.HasPrefix(text, "f:") && (first <= 0 || first > samples[0].Ms) {
			t.Errorf("%s: the first byte after %v ms of %v", text, first, samples[0].Ms)
		}
	}
}

func TestOneFailureFailsTheBundle(t *testing.T) {
	e := newLoopback(t)
	e.wrap = func(dial int, conn net.Conn) (net.Conn, error) {
		if dial == 3 {
			_ = conn.Close()
			return nil, errors.New("no route")
		}
		return conn, nil
	}
	samples := must(t, "s:5:1000").Run(t.Context(), e)
	if len(samples) != 1 || samples[0].Error != "file 3 of 5: no route" || e.dials != 5 {
		t.Errorf("%+v after %d connections", samples, e.dials)
	}
}

// silent is a connection that never receives data.
type silent struct{ net.Conn }

func (s silent) Write(b []byte) (int, error) { return len(b), nil } // the origin never receives the request

func TestEndedTransfer(t *testing.T) {
	e := newLoopback(t)
	e.wrap = func(_ int, conn net.Conn) (net.Conn, error) { return silent{conn}, nil }
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	samples := must(t, "f:1000").Run(ctx, e)
	if len(samples) != 1 || !strings.Contains(samples[0].Error, "after 0 of 1000 bytes") || e.open != 0 {
		t.Errorf("%+v, %d left open", samples, e.open)
	}
}

// slow is a connection that reads a little at a time.
type slow struct{ net.Conn }

func (s slow) Read(b []byte) (int, error) {
	time.Sleep(20 * time.Millisecond)
	return s.Conn.Read(b[:min(len(b), 1000)])
}

// TestShortFilesDuringALongOne checks that short files are transferred until the long
// one ends, and that only those that ended before it count.
func TestShortFilesDuringALongOne(t *testing.T) {
	e := newLoopback(t)
	e.wrap = func(dial int, conn net.Conn) (net.Conn, error) {
		if dial == 1 {
			return slow{conn}, nil
		}
		return conn, nil
	}
	samples := must(t, "bulk:1000:80000").Run(t.Context(), e)
	last := samples[len(samples)-1]
	if len(samples) < 2 || last.Label != LabelBulk || last.Bytes != 80_000 || last.Error != "" {
		t.Fatalf("%+v", samples)
	}
	for _, s := range samples[:len(samples)-1] {
		if s.Label != LabelShort || s.Bytes != 1000 || s.Error != "" {
			t.Errorf("%+v", s)
		}
	}
	if counted := len(samples); e.dials < counted || e.dials > counted+1 {
		t.Errorf("%d connections for %d samples", e.dials, counted)
	}
}

func TestDyingWiFi(t *testing.T) {
	e := newLoopback(t)
	samples := must(t, "dies:100000").Run(t.Context(), e)
	var labels []string
	for _, s := range samples {
		labels = append(labels, s.Label)
		if s.Error != "" || s.LimitMs <= 0 {
			t.Errorf("%+v", s)
		}
	}
	if got := strings.Join(labels, " "); got != "dies dead dead dead back" {
		t.Errorf("%s", got)
	}
	if got := strings.Join(e.calls, " "); got != "kill revive" {
		t.Errorf("%s", got)
	}
	if samples[0].DiesMs <= 0 || samples[0].LimitMs < must(t, "f:100000").Limit() {
		t.Errorf("%+v", samples[0])
	}
}

// TestWiFiThatCannotBeKilled checks that no sample is valid if WiFi could not be
// killed.
func TestWiFiThatCannotBeKilled(t *testing.T) {
	e := newLoopback(t)
	e.kill = errors.New("no such table")
	for _, s := range must(t, "dies:100000").Run(t.Context(), e) {
		if s.Error != "no such table" {
			t.Errorf("%+v", s)
		}
	}
}
