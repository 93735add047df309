package schemes

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"reflect"
	"sync"
	"testing"
	"time"

	"mplab/mpflex/internal/transport/sched"
	"mplab/mpflex/internal/transport/session"
	"mplab/mpflex/policy"
)

func schemeOf(t *testing.T, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse("FILE", []byte("policy: 1\nrules: []\ndefault: {"+text+"}\n"), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestSetIsBounded: endless changes of schemes do not fill the set.
func TestSetIsBounded(t *testing.T) {
	set := NewSet("")
	for i := range 3 * mostMade {
		if _, err := set.Of(schemeOf(t, fmt.Sprintf("paths: wlan%d", i)).Default().Scheme); err != nil {
			t.Fatal(err)
		}
	}
	if len(set.made) > mostMade {
		t.Errorf("%d schemes are kept", len(set.made))
	}
}

func TestSchemesOfASession(t *testing.T) {
	type use struct{ allowed, backup bool }
	cases := []struct {
		scheme, scheduler string
		wifi, cellular    use
	}{
		{"", "roundrobin", use{true, false}, use{true, false}},
		{"scheduler: minrtt, paths: wifi", "minrtt", use{true, false}, use{false, false}},
		{"scheduler: txdelay, backup: rmnet0", "txdelay", use{true, false}, use{true, true}},
	}
	set := NewSet("roundrobin")
	for _, c := range cases {
		p := schemeOf(t, c.scheme)
		made, err := set.Of(p.Default().Scheme)
		if err != nil {
			t.Fatal(err)
		}
		want, err := sched.New(c.scheduler)
		if err != nil || reflect.TypeOf(made.Scheduler) != reflect.TypeOf(want) {
			t.Errorf("%s: %T, want %T, %v", c.scheme, made.Scheduler, want, err)
		}
		for device, want := range map[string]use{"wlan0": c.wifi, "rmnet0": c.cellular} {
			if allowed, backup := made.Paths(device); (use{allowed, backup}) != want {
				t.Errorf("%s: %s is allowed %v, backup %v", c.scheme, device, allowed, backup)
			}
		}
		again, err := set.Of(schemeOf(t, c.scheme).Default().Scheme)
		if err != nil || again != made {
			t.Errorf("%s: made twice, %v", c.scheme, err)
		}
		byLabel, err := set.OfLabel(p.Table(), p.Default().Label)
		if err != nil || byLabel != made {
			t.Errorf("%s: label %d is another one, %v", c.scheme, p.Default().Label, err)
		}
	}
	unknown, err := set.OfLabel(schemeOf(t, "").Table(), 99)
	own, _ := set.Of(schemeOf(t, "").Default().Scheme)
	if err != nil || unknown != own {
		t.Errorf("a label that is not in the table: %v, %v", unknown, err)
	}
	if made, err := set.Of(&policy.Scheme{Scheduler: "later"}); err == nil || made != nil {
		t.Errorf("an unknown scheduler: %v, %v", made, err)
	}
}

// link connects two sessions by a loopback TCP connection that represents an interface.
func link(t *testing.T, id uint8, device string, agent, proxy *session.Session) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // nothing is lost
	near, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	for s, conn := range map[*session.Session]net.Conn{agent: near, proxy: far} {
		tcp := conn.(*net.TCPConn)
		if _, err := s.Attach(session.Link{Conn: tcp, TCP: tcp, ID: id, Name: device, Incarnation: 1}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStreamsUseTheirPaths checks that a stream of a real session uses only the paths
// of its scheme, in both directions.
func TestStreamsUseTheirPaths(t *testing.T) {
	p, err := policy.Parse("FILE", []byte("policy: 1\nrules:\n  - {name: cell, match: {port: 1}, action: {paths: cellular}}\ndefault: {scheduler: single, paths: wifi}\n"), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	wire, err := p.Table().MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	table, err := policy.ParseTable(wire)
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range []*policy.Rule{&p.Rules()[0], p.Default()} {
		t.Run(rule.Scheme.String(), func(t *testing.T) {
			agent, err := session.New(session.Agent, session.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer agent.Close() //nolint:errcheck // ends with the test
			proxy, err := session.New(session.Proxy, session.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer proxy.Close() //nolint:errcheck // ends with the test
			link(t, 0, "wlan0", agent, proxy)
			link(t, 1, "rmnet0", agent, proxy)
			exchange(t, agent, proxy, table, rule)
			for _, side := range []*session.Session{agent, proxy} {
				for _, path := range side.Status().Paths {
					if active := rule.Scheme.Use(path.Name) == policy.Active; active != (path.BytesOut > 0) || active && path.BytesOut < size {
						t.Errorf("%s carried %d bytes", path.Name, path.BytesOut)
					}
				}
			}
		})
	}
}

const size = 300_000 // bytes

// exchange sends size bytes to the proxy, which returns them.
func exchange(t *testing.T, agent, proxy *session.Session, table *policy.Table, rule *policy.Rule) {
	t.Helper()
	content := bytes.Repeat([]byte("mpflex"), size/6)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var wait sync.WaitGroup
	wait.Go(func() {
		st, err := proxy.Accept(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		scheme, err := NewSet("").OfLabel(table, rule.Label)
		if err != nil {
			t.Error(err)
			return
		}
		st.SetScheme(scheme)
		got, err := io.ReadAll(st)
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d bytes arrived, %v", len(got), err)
		}
		if _, err := st.Write(got); err != nil {
			t.Error(err)
		}
		if err := st.CloseWrite(); err != nil {
			t.Error(err)
		}
	})
	st, err := agent.Open()
	if err != nil {
		t.Fatal(err)
	}
	scheme, err := NewSet("").Of(rule.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	st.SetScheme(scheme)
	if _, err := st.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := st.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(st); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
	wait.Wait()
}
