package uplink

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"mplab/internal/netx"
	"mplab/mpflex/internal/transport/downlink"
	"mplab/mpflex/internal/transport/identity"
	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/wire"
)

var testSecret = bytes.Repeat([]byte{'u'}, identity.MinSecret)

// serveEcho starts a proxy on loopback whose streams echo their bytes. refusals returns
// its errors for connections that did not become paths.
func serveEcho(t *testing.T, private bool) (proxy netip.AddrPort, refusals func() []string) {
	t.Helper()
	known, err := identity.NewProxy([]identity.Credential{{Secret: testSecret}}, identity.Options{})
	if err != nil {
		t.Fatal(err)
	}
	serve := func(_ context.Context, _ identity.Client, st *session.Stream) {
		_, _ = io.Copy(st, st)
		_ = st.Close()
	}
	server := downlink.New(downlink.Options{Identity: known, Serve: serve, Session: session.Config{Scheduler: "roundrobin"}})
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	var mu sync.Mutex
	var all []string
	serving.Go(func() {
		for {
			conn, err := listener.AcceptTCP()
			if err != nil {
				return
			}
			serving.Go(func() {
				if err := server.Take(context.Background(), conn, private); err != nil {
					mu.Lock()
					defer mu.Unlock()
					all = append(all, err.Error())
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		server.Close()
		serving.Wait()
	})
	return netx.AddrPort(listener.Addr()), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), all...)
	}
}

// TestClockJumps: the phone's clock is an hour off before the path is set up. An
// encrypted path is not affected. For a plain one, each side logs one line, and then
// the path is attached.
func TestClockJumps(t *testing.T) {
	for name, c := range map[string]struct {
		private       bool
		ahead         time.Duration
		agent, refuse string
	}{
		"private, ahead": {true, time.Hour, "", ""},
		"private":        {true, -time.Hour, "", ""},
		"plain, ahead":   {false, time.Hour, "the clocks", "the agent's is 1h0m0s ahead of this one"},
		"plain, behind":  {false, -time.Hour, "the clocks", "the agent's is 1h0m0s behind this one"},
		"plain, right":   {false, 0, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			proxy, refusals := serveEcho(t, c.private)
			var mu sync.Mutex
			var failed []string
			o := Options{Proxy: proxy, Secret: testSecret, Paths: []Path{{Device: ""}}, Log: func(e Event) {
				mu.Lock()
				defer mu.Unlock()
				if e.What == Failed {
					failed = append(failed, e.Err.Error())
				}
			}}
			if c.private {
				var err error
				if o.Private, err = identity.NewAgent(testSecret, identity.Options{}); err != nil {
					t.Fatal(err)
				}
			}
			u, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			u.clock.Learn(&wire.SkewError{Ahead: -c.ahead}) // so that its messages have a wrong time
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { u.Run(ctx) })
			st, err := u.Open()
			if err != nil {
				t.Fatal(err)
			}
			_ = st.SetDeadline(time.Now().Add(20 * time.Second))
			if _, err := st.Write([]byte("hello")); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(st, make([]byte, 5)); err != nil {
				t.Errorf("%v; failures: %q; the proxy: %q", err, failed, refusals())
			}
			cancel()
			running.Wait()
			mu.Lock()
			defer mu.Unlock()
			one := func(where string, lines []string, want string) {
				if want == "" && len(lines) != 0 || want != "" && (len(lines) != 1 || !strings.Contains(lines[0], want)) {
					t.Errorf("%s: %q, want one line with %q", where, lines, want)
				}
			}
			one("agent", failed, c.agent)
			one("proxy", refusals(), c.refuse)
		})
	}
}
