package integration

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"mplab/mpflex/connlog"
	"mplab/mpflex/status"
)

const datagramRules = `policy: 1
rules:
  - name: pinned
    match: {protocol: udp, port: 8080}
    action: {scheduler: single, paths: rmnet0}
  - name: call
    match: {protocol: udp, port: 443}
    action: {scheduler: redundant, paths: [wlan0, rmnet0]}
  - name: home
    match: {protocol: udp, address: 10.64.0.0/16}
    action: direct
default: {scheduler: single, paths: wlan0}
`

// between returns how many datagrams a path carried out of and into a program between
// two reports.
func between(before, after status.Report, name string) (out, in int64) {
	b, a := path(before, name), path(after, name)
	return a.DatagramsOut - b.DatagramsOut, a.DatagramsIn - b.DatagramsIn
}

// TestDatagramsBySchemes: the rule for a datagram's destination selects its paths and
// those of the answer.
func TestDatagramsBySchemes(t *testing.T) {
	private(t, func(t *testing.T, plain bool) {
		needLab(t)
		socket := filepath.Join(t.TempDir(), "agent")
		settings, _ := withRules(t, datagramRules, withSocks(flex(plain)))
		maps.Copy(settings, values{"control": socket})
		s := start(t, settings)
		attached(t, s.agent)
		for i, c := range []struct {
			port, rule, scheme string
			wifi, lte          bool
		}{
			{"8080", "pinned", "single over rmnet0", false, true},
			{"80", "default", "single over wlan0", true, false},
			{"443", "call", "redundant over wlan0, rmnet0", true, true},
		} {
			startEcho(t, "10.65.0.5:"+c.port)
			before := statusOf(t, socket)
			got := udpJitter(t, "10.65.0.5:"+c.port, "--seconds", "0.5")
			if !got.OK || got.Answered != got.Sent || got.Up.Duplicates+got.Down.Duplicates != 0 {
				t.Errorf("%s: %+v", c.rule, got)
			}
			after := statusOf(t, socket)
			for name, used := range map[string]bool{"wlan0": c.wifi, "rmnet0": c.lte} {
				out, in := between(before, after, name)
				if used && (out < int64(got.Sent) || in < int64(got.Sent)) || !used && out+in > 0 {
					t.Errorf("%s: %d datagrams out and %d in over %s", c.rule, out, in, name)
				}
			}
			if counters := after.Sessions[0].Counters; c.rule == "call" && (counters.DatagramCopies < int64(got.Sent) || counters.DatagramDuplicates < int64(got.Sent)) {
				t.Errorf("%+v", counters)
			}
			var all []connlog.Association
			eventually(t, "the record", func() bool {
				all = records[connlog.Association](t, s.agent.log, "udp")
				return len(all) > i
			})
			if r := all[i].Rules; len(r) != 1 || r[0].Rule != c.rule || r[0].Scheme != c.scheme || r[0].Datagrams != all[i].DatagramsUp {
				t.Errorf("%s: %+v", c.rule, all[i])
			}
		}
	})
}

// TestRedundantDatagramsInABlackHole: the other path delivers the datagrams that one
// path loses. None is delivered twice.
func TestRedundantDatagramsInABlackHole(t *testing.T) {
	settings, _ := withRules(t, datagramRules, withSocks(flex(false)))
	s := start(t, settings)
	startEcho(t, "10.65.0.5:443")
	attached(t, s.agent)
	begun := make(chan struct{})
	go func() {
		defer close(begun)
		time.Sleep(300 * time.Millisecond)
		hole(t, true)
	}()
	defer hole(t, false)
	got := udpJitter(t, "10.65.0.5:443", "--seconds", "2")
	<-begun
	if !got.OK || !got.Certain || got.Answered != got.Sent || got.Up.Duplicates+got.Down.Duplicates != 0 {
		t.Errorf("%+v", got)
	}
	if events := pathEvents(t, s.agent); !slices.Contains(events, "stalled wlan0") {
		t.Errorf("nothing was lost: %v", events)
	}
}

// TestDatagramsPastTheProxy: the agent itself sends datagrams that a rule lets past the
// proxy, and returns the answers.
func TestDatagramsPastTheProxy(t *testing.T) {
	settings, _ := withRules(t, datagramRules, withSocks(flex(false)))
	s := start(t, settings)
	startEchoAt(t, "router", "10.64.1.1:9000")
	attached(t, s.agent)
	if got := udpJitter(t, "10.64.1.1:9000", "--seconds", "0.3"); !got.OK || got.Answered != got.Sent {
		t.Errorf("%+v", got)
	}
	var all []connlog.Association
	eventually(t, "a record", func() bool {
		all = records[connlog.Association](t, s.agent.log, "udp")
		return len(all) == 1
	})
	if r := all[0]; r.Direct != r.DatagramsUp || r.DatagramsDown == 0 || len(r.Rules) != 1 || r.Rules[0].Rule != "home" || r.Rules[0].Scheme != "direct" {
		t.Errorf("%+v", r)
	}
	s.agent.stop(t)
	if there := udpRecords(t, s.proxy); len(there) != 0 {
		t.Errorf("it came to the proxy: %+v", there)
	}
}

// TestLookupsByRules: for rules, lookups are UDP to the DNS server.
func TestLookupsByRules(t *testing.T) {
	rules := func(action string) string {
		return "policy: 1\nrules:\n  - name: lookups\n    match: {protocol: udp, port: 53}\n    action: " + action + "\ndefault: {scheduler: single, paths: wlan0}\n"
	}
	t.Run("carried", func(t *testing.T) {
		settings, file := withRules(t, rules("{scheduler: single, paths: rmnet0}"), flex(false))
		s := start(t, settings)
		attached(t, s.agent)
		opened := nameServer(t, 1000)
		ask(t, "dl.lab.", dnsmessage.TypeA, 1)
		writeRules(t, file, rules("block"))
		reload(t, s.agent)
		if answer := ask(t, "dl.lab.", dnsmessage.TypeA, 2); answer.RCode != dnsmessage.RCodeRefused {
			t.Errorf("blocked: %+v", answer.Header)
		}
		writeRules(t, file, rules("{scheduler: single, paths: wlan0}"))
		reload(t, s.agent)
		for id := range uint16(3) {
			if answer := ask(t, "dl.lab.", dnsmessage.TypeA, id); len(answer.Answers) != 1 {
				t.Errorf("%+v", answer)
			}
		}
		if n := opened.Load(); n != 2 {
			t.Errorf("%d connections to the server, not one for each way", n)
		}
		s.agent.stop(t)
		seen := map[string]bool{}
		for _, c := range connections(t, s.agent, dnsServer, 2) {
			up, down := directions(c)
			seen[c.Rule+": "+c.Scheme+": "+up+", "+down] = true
		}
		if !seen["lookups: single over rmnet0: rmnet0, rmnet0"] || !seen["lookups: single over wlan0: wlan0, wlan0"] {
			t.Errorf("%v", seen)
		}
	})
	t.Run("past the proxy", func(t *testing.T) {
		for name, transport := range transports() {
			t.Run(name, func(t *testing.T) {
				const server = "10.64.1.1:53"
				settings, _ := withRules(t, rules("direct"), transport)
				settings["dns_server"] = server
				s := start(t, settings)
				nameServerAt(t, "router", server, 1000)
				if answer := ask(t, "dl.lab.", dnsmessage.TypeA, 1); len(answer.Answers) != 1 {
					t.Errorf("%+v", answer)
				}
				s.agent.stop(t)
				if c := connections(t, s.agent, server, 1)[0]; c.Transport != "direct" || c.Rule != "lookups" || c.BytesDown == 0 || c.Remote.String() != server {
					t.Errorf("%+v", c)
				}
			})
		}
	})
}
