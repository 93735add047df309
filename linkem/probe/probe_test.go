package probe

import (
	"math"
	"net"
	"testing"
	"time"

	"mplab/linkem/internal/exit"
)

func TestDeliveryRate(t *testing.T) {
	// A token bucket passes the first 20 packets at once; then 1000 bytes per millisecond are 8 Mbit/s.
	var samples []sample
	for range 20 {
		samples = append(samples, sample{0, 1000})
	}
	for i := range 100 {
		samples = append(samples, sample{int64(i+1) * 1e6, 1000})
	}
	rate, ok := deliveryRate(samples)
	if !ok || math.Abs(rate-8e6) > 1 {
		t.Errorf("%v, %v", rate, ok)
	}
	// The sender stalls for 40 ms in the middle: the link is idle then, but its rate is unchanged.
	for i := 70; i < len(samples); i++ {
		samples[i].at += 40e6
	}
	if rate, ok := deliveryRate(samples); !ok || math.Abs(rate-8e6) > 1 {
		t.Errorf("with a stall: %v, %v", rate, ok)
	}
	for _, few := range [][]sample{nil, samples[:3], samples[:20]} { // in the last one, no time passes
		if rate, ok := deliveryRate(few); ok {
			t.Errorf("%v from %d samples", rate, len(few))
		}
	}
}

func TestBlastSizeKeepsEnoughSamples(t *testing.T) {
	for _, c := range []struct {
		rate float64
		want int
	}{{100e6, largestMessage}, {130e3, 97}, {1e3, smallestBlast}} {
		if got := blastSize(c.rate, 0.6); got != c.want {
			t.Errorf("%v bit/s: %d bytes, want %d", c.rate, got, c.want)
		}
	}
}

func TestRTTStatistics(t *testing.T) {
	got := newRTT([]float64{4, 1, 3, 2, 5}, 6)
	if want := (RTT{Min: 1, Median: 3, P90: 4.6, IQR: 2, Sent: 6, Received: 5}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestMessagesSurviveTheWire(t *testing.T) {
	m := message{kindDownStart, newToken(), 7, 1 << 60, 3}
	var packet [headBytes]byte
	m.put(packet[:])
	if got, ok := parse(packet[:]); !ok || got != m {
		t.Errorf("%+v, want %+v", got, m)
	}
	packet[4] = 99
	for _, bad := range [][]byte{nil, packet[:], packet[:47], make([]byte, 100)} {
		if _, ok := parse(bad); ok {
			t.Errorf("%v was taken", bad)
		}
	}
}

// startServer starts a probe server on the loopback interface.
func startServer(t *testing.T) string {
	t.Helper()
	addr := make(chan string, 1)
	done := make(chan error, 1)
	ctx := t.Context()
	go func() { done <- Serve(ctx, "127.0.0.1:0", func(a net.Addr) { addr <- a.String() }) }()
	select {
	case a := <-addr:
		t.Cleanup(func() {
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
		return a
	case err := <-done:
		t.Fatal(err)
		return ""
	}
}

// exchange sends a message and returns the answer that arrives within a short time.
func exchange(t *testing.T, conn net.Conn, m message) (message, bool) {
	t.Helper()
	if _, err := conn.Write(padded(m, 0, 0)); err != nil {
		t.Fatal(err)
	}
	var packet [2000]byte
	_ = conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	n, err := conn.Read(packet[:])
	if err != nil {
		return message{}, false
	}
	return parse(packet[:n])
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestServerIsNoReflector(t *testing.T) {
	addr := startServer(t)
	conn, thief := dial(t, addr), dial(t, addr)
	nonce := newToken()
	welcome, ok := exchange(t, conn, message{kind: kindHello, token: nonce})
	if first, second := nonce.halves(); !ok || welcome.kind != kindWelcome || welcome.first != first || welcome.second != second {
		t.Fatalf("%+v, %v", welcome, ok)
	}
	start := func(token token, run uint32, rate uint64, milliseconds uint64) message {
		return message{kindDownStart, token, run, rate, milliseconds<<32 | 1000}
	}
	if m, ok := exchange(t, conn, start(newToken(), 1, 1e6, 100)); ok {
		t.Errorf("an unknown token was answered: %+v", m)
	}
	if m, ok := exchange(t, thief, start(welcome.token, 1, 1e6, 100)); ok {
		t.Errorf("the token of another address was answered: %+v", m)
	}
	for name, m := range map[string]message{
		"too long": start(welcome.token, 1, 1e6, 20_000), "too fast": start(welcome.token, 1, 1e12, 100), "no size": {kindDownStart, welcome.token, 1, 1e6, 100 << 32},
	} {
		if got, ok := exchange(t, conn, m); !ok || got.kind != kindRefused || got.first != refusedRun {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
	if got, ok := exchange(t, conn, start(welcome.token, 1, 1_999_000_000, 9_000)); !ok || got.kind != kindRefused || got.first != refusedBudget {
		t.Errorf("more than a session's bytes: %+v, %v", got, ok)
	}
	if got, ok := exchange(t, conn, message{kind: kindEcho, token: welcome.token, sequence: 5}); !ok || got.kind != kindEchoed || got.sequence != 5 {
		t.Errorf("%+v, %v", got, ok)
	}
	if got, ok := exchange(t, conn, start(welcome.token, 2, 1e6, 50)); !ok || got.kind != kindDownData {
		t.Errorf("%+v, %v", got, ok)
	}
}

func TestALaterRunEndsTheRunningBlast(t *testing.T) {
	conn := dial(t, startServer(t))
	welcome, ok := exchange(t, conn, message{kind: kindHello, token: newToken()})
	if !ok {
		t.Fatal("no welcome")
	}
	start := func(run uint32) message {
		return message{kindDownStart, welcome.token, run, 1e6, uint64(mostBlastTime.Milliseconds())<<32 | 1000}
	}
	if got, ok := exchange(t, conn, start(1)); !ok || got.kind != kindDownData {
		t.Fatalf("%+v, %v", got, ok)
	}
	for range 1000 { // more packets than the first blast sends before the server reads the request, fewer than all of it
		got, ok := exchange(t, conn, start(2))
		if ok && got.kind == kindRefused {
			t.Fatalf("refused: %+v", got)
		}
		if ok && got.kind == kindDownData && got.sequence == 2 {
			for range 100 { // a delayed copy of the first request must not end the second blast
				if got, ok := exchange(t, conn, start(1)); ok && (got.kind == kindRefused || got.sequence == 1) {
					t.Fatalf("%+v, %v", got, ok)
				}
			}
			return
		}
	}
	t.Error("the second blast did not begin")
}

func TestServerBoundsItsSessions(t *testing.T) {
	addr := startServer(t)
	conn := dial(t, addr)
	for range mostSessions {
		if m, ok := exchange(t, conn, message{kind: kindHello, token: newToken()}); !ok || m.kind != kindWelcome {
			t.Fatalf("%+v, %v", m, ok)
		}
	}
	if m, ok := exchange(t, conn, message{kind: kindHello, token: newToken()}); !ok || m.kind != kindRefused || m.first != refusedBusy {
		t.Errorf("%+v, %v", m, ok)
	}
}

func TestProbeSkipsUnlimitedRates(t *testing.T) {
	o := Options{Server: startServer(t), Pings: 3, Seconds: 0.1, Timeout: 5 * time.Second}
	r, err := Measure(t.Context(), o)
	if err != nil || r.DownKbps != nil || r.UpKbps != nil || r.RTT.Received != 3 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestABlastThatArrivesAsABurstIsRepeated(t *testing.T) {
	socket, err := connect("", startServer(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	c := &client{options: Options{Timeout: 5 * time.Second}, socket: socket, overhead: 28}
	if err := c.handshake(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		bits  []float64
		want  float64
		tries int
	}{
		{[]float64{1.3e6}, 1300, 1},        // the link has more than the expected rate: as fast as the blast
		{[]float64{5e9, 1e6}, 1000, 2},     // a machine stalled
		{[]float64{5e9, 5e9, 6e9}, 6e6, 3}, // the link lets bursts pass
	} {
		tries := 0
		kbps, err := c.rate("down", 1000, func() (float64, bool, error) {
			tries++
			return test.bits[tries-1], true, nil
		})
		if err != nil || *kbps != test.want || tries != test.tries {
			t.Errorf("%v: %v after %d tries (%v), want %v after %d", test.bits, *kbps, tries, err, test.want, test.tries)
		}
	}
}

func TestPingsDoNotFillASlowLink(t *testing.T) {
	for _, c := range []struct {
		options Options
		want    time.Duration
	}{
		{Options{}, pingPause},
		{Options{PingPause: 10 * time.Millisecond, DownKbps: 7000, UpKbps: 2000}, 10 * time.Millisecond},
		{Options{PingPause: 10 * time.Millisecond, DownKbps: 7000, UpKbps: 50}, time.Duration(smallestBlast * 8e6 / (50 * echoShare))},
	} {
		if got := c.options.pingPause(); got != c.want {
			t.Errorf("%+v: %v, want %v", c.options, got, c.want)
		}
	}
}

func TestProbeOptionsAreChecked(t *testing.T) {
	good := Options{Server: "127.0.0.1:1", Pings: 1, Seconds: 0.5, Timeout: time.Second}
	for name, change := range map[string]func(*Options){
		"negative rate": func(o *Options) { o.DownKbps = -1 },
		"NaN":           func(o *Options) { o.UpKbps = math.NaN() },
		"tiny rate":     func(o *Options) { o.UpKbps = 0.1 },
		"no pings":      func(o *Options) { o.Pings = 0 },
		"no time":       func(o *Options) { o.Seconds = 0 },
		"too much":      func(o *Options) { o.DownKbps, o.Seconds = 1e6, 5 },
		"no server":     func(o *Options) { o.Server = "" },
	} {
		o := good
		change(&o)
		if _, err := Measure(t.Context(), o); exit.Code(err) != exit.Config {
			t.Errorf("%s: %v", name, err)
		}
	}
}
