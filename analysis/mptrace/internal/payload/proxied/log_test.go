package proxied

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mplab/analysis/mptrace/internal/fixture"
	"mplab/mpflex/connlog"
)

func at(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }

// logged returns a record as written by agent and proxy.
func logged(t *testing.T, opened, duration float64, local, remote, dst, process string) string {
	t.Helper()
	r := connlog.Connection{Event: "connection", ID: 1, Opened: connlog.Moment{Time: time.UnixMicro(int64(opened * 1e6))}, DurationS: duration, Transport: "mptcp", Process: process, Status: connlog.Closed}
	r.Src.AddrPort, r.Dst.AddrPort = at("10.1.0.1:39000"), at(dst)
	if local != "" {
		r.Local.AddrPort, r.Remote.AddrPort = at(local), at(remote)
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + "\n"
}

func TestALogTellsWhereAConnectionGoes(t *testing.T) {
	const agent, proxy = "10.0.0.1:40000", "10.0.9.9:7002"
	l, err := Open(fixture.File(t,
		logged(t, 1000, 5, agent, proxy, "192.0.2.1:443", "curl")+
			`{"event":"dns","t":1000.5,"name":"dl.lab.","type":"A","rcode":"NOERROR","duration_s":0.1}`+"\n"+
			`{"event":"refused","t":1001,"remote":"10.0.0.1:1","reason":"x"}`+"\n\n"+
			`{"event":"something new"}`+"\n"+
			logged(t, 1010, 0, agent, proxy, "192.0.2.2:80", "chrome")+
			logged(t, 1020, 3, "", "", "192.0.2.3:80", "never opened")+
			logged(t, 2000, 3, "[::ffff:10.0.0.5]:1", "[2001:db8::1]:7002", "[2001:db8::5]:443", "")))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, a, b string
		start      float64
		want       string
		app        string
	}{
		{"the first of two", agent, proxy, 1000.02, "192.0.2.1:443", "curl"},
		{"as the proxy sees it", proxy, agent, 999.9, "192.0.2.1:443", "curl"},
		{"the port used again", agent, proxy, 1010.5, "192.0.2.2:80", "chrome"},
		{"nearer to the second", agent, proxy, 1006, "192.0.2.2:80", "chrome"},
		{"much later", agent, proxy, 1100, "", ""},
		{"much earlier", agent, proxy, 900, "", ""},
		{"another port", "10.0.0.1:40001", proxy, 1000, "", ""},
		{"the application's connection", "10.1.0.1:39000", "192.0.2.3:80", 1020, "192.0.2.3:80", "never opened"},
		{"an address in its IPv6 form", "10.0.0.5:1", "[2001:db8::1]:7002", 2001, "[2001:db8::5]:443", ""},
	} {
		got, ok := l.Find(at(c.a), at(c.b), int64(c.start*1e9))
		if ok != (c.want != "") || ok && (got.Destination != at(c.want) || got.Application != c.app) {
			t.Errorf("%s: %+v, %v", c.name, got, ok)
		}
	}
	if _, ok := (*Log)(nil).Find(at(agent), at(proxy), 0); ok {
		t.Error("found without a log")
	}
}

func TestABadLineIsNamed(t *testing.T) {
	const good = `{"event":"connection","opened":1,"duration_s":1,"src":"","dst":"","local":"","remote":""}`
	for _, c := range []struct{ line, found string }{
		{"not json", `"not json", want a JSON object`},
		{`{"event":"connection","opened":1,"dura`, `want a JSON object`},
		{`[1]`, `"[1]", want a JSON object`},
		{`{"opened":1}`, `no "event", want "connection", "dns" or "refused"`},
		{`{"event":"connection"}`, `"opened" missing, want unix seconds`},
		{`{"event":"connection","opened":"1"}`, `"opened" with a JSON string, want a number`},
		{`{"event":"connection","opened":-1}`, `"opened" -1, want unix seconds`},
		{`{"event":"connection","opened":1e20}`, `"opened" 1e+20, want unix seconds`},
		{`{"event":"connection","opened":1,"duration_s":-2}`, `"duration_s" -2, want seconds`},
		{`{"event":"connection","opened":1,"local":"10.0.0.1"}`, `"local" "10.0.0.1", want address:port or ""`},
		{`{"event":"connection","opened":1,"dst":7}`, `"dst" with a JSON number, want a text`},
		{strings.Repeat("x", 2<<20), `a line of more than 1 MiB, want a JSON object`},
	} {
		name := fixture.File(t, good+"\n"+c.line+"\n")
		_, err := Open(name)
		if err == nil || !strings.HasPrefix(err.Error(), name+":2: found ") || !strings.Contains(err.Error(), c.found) {
			t.Errorf("%.60s: %v", c.line, err)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !os.IsNotExist(err) {
		t.Error(err)
	}
}
