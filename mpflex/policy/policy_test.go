package policy

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"path"
	"strings"
	"testing"
	"time"
)

const goodFile = `policy: 1
plan: {limit: 5 GB, reset_day: 15}
schemes:
  wifi-only: {scheduler: single, paths: wifi}
  both: {scheduler: minrtt, paths: [wifi, cellular]}
rules:
  - name: low battery
    match: {battery: < 20%}
    action: wifi-only
  - name: adverts
    match: {domain: [ads.example, "*.ads.example"]}
    action: block
  - name: printer
    match: {address: 192.168.0.0/16, port: [631, 9100-9102]}
    action: direct
  - name: video
    match:
      package: com.google.android.youtube
      wifi_throughput: < 1 Mbit/s
      plan_left: ">= 10 %"
    action: {paths: wifi, backup: rmnet0}
  - name: night
    match: {time: 22:00-06:00 UTC}
    action: both
default: wifi-only
`

func mustParse(t testing.TB, text string) *Policy {
	t.Helper()
	p, err := Parse("FILE", []byte(text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// at returns conditions at a time of day in UTC.
func at(clock string) Conditions {
	day, err := time.Parse("15:04:05", clock)
	if err != nil {
		panic(err)
	}
	return Conditions{Time: time.Date(2026, 7, 14, day.Hour(), day.Minute(), day.Second(), 0, time.UTC)}
}

func TestFirstRuleThatMatches(t *testing.T) {
	p := mustParse(t, goodFile)
	day, night := at("12:00:00"), at("23:00:00")
	low, full := day, day
	low.Battery, full.Battery = Known(10), Known(100)
	slow := full
	slow.WiFiThroughput, slow.PlanLeft, slow.PlanLimit = Known(0.5e6), Known(2e9), Known(5e9)
	spent := slow
	spent.PlanLeft = Known(0.4e9)
	youtube := Flow{UID: 10100, Packages: []string{"com.google.android.youtube"}}
	adverts := Flow{UID: -1, Domain: "x.ads.example"}
	printer := Flow{UID: -1, Dst: netip.MustParseAddrPort("192.168.1.9:9101")}
	cases := []struct {
		flow       Flow
		conditions Conditions
		rule       string
		action     Action
		label      byte
	}{
		{youtube, low, "low battery", Carry, 1},
		{adverts, low, "low battery", Carry, 1},
		{adverts, full, "adverts", Block, 0},
		{adverts, night, "adverts", Block, 0},
		{printer, full, "printer", Direct, 0},
		{youtube, slow, "video", Carry, 3},
		{youtube, spent, "default", Carry, 1},
		{youtube, full, "default", Carry, 1},
		{youtube, night, "night", Carry, 2},
		{Flow{UID: -1}, Conditions{}, "default", Carry, 1},
	}
	for _, c := range cases {
		d := p.Decide(&c.flow, &c.conditions)
		if d.Name != c.rule || d.Action != c.action || d.Label != c.label {
			t.Errorf("%+v, %+v: %s %s %d, want %s %s %d", c.flow, c.conditions, d.Name, d.Action, d.Label, c.rule, c.action, c.label)
		}
		if scheme, known := p.Table().Scheme(d.Label); d.Action == Carry && (!known || scheme != d.Scheme) || d.Action != Carry && d.Scheme != nil {
			t.Errorf("%s: scheme %v, label %d is %v", d.Name, d.Scheme, d.Label, scheme)
		}
	}
	if p.Needs() != (Needs{Package: true, Domain: true}) {
		t.Errorf("%+v", p.Needs())
	}
	if p.Plan.Limit != 5e9 || p.Plan.ResetDay != 15 || !p.Plan.Counts("rmnet0") || p.Plan.Counts("wlan0") {
		t.Errorf("%+v", p.Plan)
	}
}

// TestFormsOfAFile has the same rules in the forms of other editors and programs.
func TestFormsOfAFile(t *testing.T) {
	night := at("23:00:00")
	for about, text := range map[string]string{
		"CRLF":            strings.ReplaceAll(goodFile, "\n", "\r\n"),
		"byte order mark": "\ufeff" + goodFile,
		"comments":        "# rules\n---\n" + strings.ReplaceAll(goodFile, "\n", " # here\n") + "...\n",
		"JSON": `{
			"policy": 1, "schemes": {"wifi-only": {"scheduler": "single", "paths": ["wifi"]}},
			"rules": [{"name": "night", "match": {"time": "22:00-06:00 UTC"}, "action": {"scheduler": "minrtt", "paths": ["wifi", "cellular"]}}],
			"default": "wifi-only"}`,
	} {
		p := mustParse(t, text)
		if d := p.Decide(&Flow{}, &night); d.Name != "night" || d.Scheme.String() != "minrtt over wifi, cellular" {
			t.Errorf("%s: %s", about, d.Why())
		}
	}
}

func TestWords(t *testing.T) {
	p := mustParse(t, goodFile)
	night := at("23:00:00")
	cases := []struct{ got, want string }{
		{p.Decide(&Flow{}, &night).Why(), "rule night (FILE:22): time 22:00-06:00 UTC"},
		{p.Decide(&Flow{}, &Conditions{}).Why(), "no rule matched: default (FILE:25)"},
		{p.Rules()[3].Match(), "wifi_throughput < 1 Mbit/s, plan_left >= 10 %, package com.google.android.youtube"},
		{p.Rules()[0].What(), "carry: single over wifi (label 1)"},
		{p.Rules()[1].What(), "block"},
		{p.Rules()[2].What(), "direct"},
		{p.Rules()[3].What(), "carry: default over wifi; backup rmnet0 (label 3)"},
		{p.Rules()[4].What(), "carry: minrtt over wifi, cellular (label 2)"},
		{mustParse(t, withScheme("backup: wlan1")).Default().What(), "carry: default over every other path; backup wlan1 (label 1)"},
		{mustParse(t, withScheme("")).Default().What(), "carry: default over every path (label 0)"},
	}
	for _, c := range cases {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

// TestConditions has, for each condition: values that match, values that do not, and
// the text for those.
func TestConditions(t *testing.T) {
	flow := func(change func(*Flow)) func(*Flow, *Conditions) { return func(f *Flow, _ *Conditions) { change(f) } }
	state := func(change func(*Conditions)) func(*Flow, *Conditions) {
		return func(_ *Flow, c *Conditions) { change(c) }
	}
	domain := func(name string) func(*Flow, *Conditions) { return flow(func(f *Flow) { f.Domain = name }) }
	process := func(name string) func(*Flow, *Conditions) { return flow(func(f *Flow) { f.Process = name }) }
	to := func(dst string) func(*Flow, *Conditions) {
		return flow(func(f *Flow) { f.Dst = netip.MustParseAddrPort(dst) })
	}
	clock := func(text string) func(*Flow, *Conditions) {
		return state(func(c *Conditions) { c.Time = at(text).Time })
	}
	level := func(percent float64) func(*Flow, *Conditions) {
		return state(func(c *Conditions) { c.Battery = Known(percent) })
	}
	plan := func(left, limit float64) func(*Flow, *Conditions) {
		return state(func(c *Conditions) { c.PlanLeft, c.PlanLimit = Known(left), Known(limit) })
	}
	nothing := func(*Flow, *Conditions) {}
	cases := []struct {
		condition string
		set       func(*Flow, *Conditions)
		why       string // why not; "": it holds
	}{
		{"protocol: tcp", flow(func(f *Flow) { f.Protocol = TCP }), ""},
		{"protocol: tcp", flow(func(f *Flow) { f.Protocol = UDP }), "protocol udp, not tcp"},
		{"protocol: udp", nothing, "protocol unknown, not udp"},
		{"port: 443", to("192.0.2.1:443"), ""},
		{"port: [80, 8000-8999]", to("192.0.2.1:8000"), ""},
		{"port: [80, 8000-8999]", to("192.0.2.1:8999"), ""},
		{"port: [80, 8000-8999]", to("192.0.2.1:9000"), "port 9000, not 80, 8000-8999"},
		{"port: [1, 2, 3, 4, 5, 6]", to("192.0.2.1:9"), "port 9, not 1, 2, 3, 4 or 2 more"},
		{"port: 443", nothing, "port unknown, not 443"},
		{"uid: 0", flow(func(f *Flow) { f.UID = 0 }), ""},
		{"uid: 10000-19999", flow(func(f *Flow) { f.UID = 10086 }), ""},
		{"uid: 10000-19999", flow(func(f *Flow) { f.UID = 20000 }), "uid 20000, not 10000-19999"},
		{"uid: 0-4294967294", nothing, "uid unknown, not 0-4294967294"},
		{"address: 192.0.2.0/24", to("192.0.2.7:1"), ""},
		{"address: 192.0.2.7", to("[::ffff:192.0.2.7]:1"), ""},
		{"address: [10.0.0.0/8, \"2001:db8::/32\"]", to("[2001:db8::1]:1"), ""},
		{"address: fe80::1", to("[fe80::1%eth0]:1"), ""},
		{"address: [10.0.0.0/8, 192.0.2.1]", to("192.0.2.7:1"), "address 192.0.2.7, not 10.0.0.0/8, 192.0.2.1"},
		{"address: 0.0.0.0/0", to("[2001:db8::1]:1"), "address 2001:db8::1, not 0.0.0.0/0"},
		{"address: 0.0.0.0/0", nothing, "address unknown, not 0.0.0.0/0"},
		{"process: chrome", process("chrome"), ""},
		{"process: [curl, \"chrom*\"]", process("chromium"), ""},
		{"process: chrome", process("chromium"), "process chromium, not chrome"},
		{"process: \"*\"", process("x"), ""},
		{"process: \"*\"", nothing, "process unknown, not *"},
		{"package: \"com.google.*\"", flow(func(f *Flow) { f.Packages = []string{"org.x", "com.google.maps"} }), ""},
		{"package: com.google", flow(func(f *Flow) { f.Packages = []string{"org.x", "com.google.maps"} }), "package org.x, com.google.maps, not com.google"},
		{"package: \"*\"", nothing, "package unknown, not *"},
		{"domain: Example.ORG", domain("example.org"), ""},
		{"domain: bücher.example", domain("xn--bcher-kva.example"), ""},
		{"domain: example.org", domain("www.example.org"), "domain www.example.org, not example.org"},
		{"domain: \"*.example.org\"", domain("a.b.example.org"), ""},
		{"domain: \"*.example.org\"", domain("example.org"), "domain example.org, not *.example.org"},
		{"domain: \"*.example.org\"", domain("badexample.org"), "domain badexample.org, not *.example.org"},
		{"domain: example.org", nothing, "domain unknown, not example.org"},
		{"time: 09:00-17:30", clock("09:00:00"), ""},
		{"time: 09:00-17:30", clock("17:29:59"), ""},
		{"time: 09:00-17:30", clock("17:30:00"), "time 17:30:00, not 09:00-17:30"},
		{"time: 22:00-06:00", clock("22:00:00"), ""},
		{"time: 22:00-06:00", clock("05:59:59"), ""},
		{"time: 22:00-06:00", clock("06:00:00"), "time 06:00:00, not 22:00-06:00"},
		{"time: 22:00-24:00", clock("23:59:59"), ""},
		{"time: [01:00-02:00, 03:00-04:00]", clock("03:30:00"), ""},
		{"time: 12:00-13:00 Europe/Brussels", clock("10:30:00"), ""}, // UTC+2 in July
		{"time: 12:00-13:00 Europe/Brussels", clock("12:30:00"), "time 14:30:00 Europe/Brussels, not 12:00-13:00 Europe/Brussels"},
		{"time: 00:00-24:00", nothing, "time unknown, not 00:00-24:00"},
		{"battery: < 20 %", level(19.9), ""},
		{"battery: < 20 %", level(20), "battery 20 %, not < 20 %"},
		{"battery: <= 20%", level(20), ""},
		{"battery: \"> 20 %\"", level(20), "battery 20 %, not > 20 %"},
		{"battery: \">= 20 %\"", level(20), ""},
		{"battery: \">= 0 %\"", nothing, "battery unknown, not >= 0 %"},
		{"wifi_throughput: < 2Mbps", state(func(c *Conditions) { c.WiFiThroughput = Known(1.99e6) }), ""},
		{"wifi_throughput: < 2.5 Mbit/s", state(func(c *Conditions) { c.WiFiThroughput = Known(12.34e6) }), "WiFi throughput 12.3 Mbit/s, not < 2.5 Mbit/s"},
		{"wifi_throughput: < 2 Gbit/s", nothing, "WiFi throughput unknown, not < 2 Gbit/s"},
		{"plan_left: < 500 MB", plan(499e6, 5e9), ""},
		{"plan_left: < 500 MB", plan(1234e6, 5e9), "plan left 1234 MB, not < 500 MB"},
		{"plan_left: < 10 %", plan(499e6, 5e9), ""},
		{"plan_left: < 10 %", plan(2.5e9, 5e9), "plan left 50 %, not < 10 %"},
		{"plan_left: < 10 %", state(func(c *Conditions) { c.PlanLeft = Known(1) }), "plan left unknown, not < 10 %"},
		{"plan_left: \">= 0 B\"", nothing, "plan left unknown, not >= 0 B"},
	}
	for _, c := range cases {
		p := mustParse(t, "plan: {limit: 5 GB}\n"+withMatch(c.condition))
		f, conditions := Flow{UID: -1}, Conditions{}
		c.set(&f, &conditions)
		e := p.Explain(&f, &conditions)
		v := e.Rules[0]
		if v.Matched != (c.why == "") || v.Taken != v.Matched || (e.Decision.Name == "one") != v.Matched {
			t.Errorf("%s: %+v, decision %s", c.condition, v, e.Decision.Name)
		}
		if c.why != "" && v.Why != c.why || c.why == "" && v.Why != v.Rule.Match() {
			t.Errorf("%s: %q, want %q", c.condition, v.Why, c.why)
		}
	}
}

func TestGlobs(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	word := func(letters string, most int) string {
		b := make([]byte, random.IntN(most+1))
		for i := range b {
			b[i] = letters[random.IntN(len(letters))]
		}
		return string(b)
	}
	matched := 0
	for range 50000 {
		pattern, name := word("ab*?", 6), word("ab", 8)
		want, err := path.Match(pattern, name)
		if err != nil {
			t.Fatal(err)
		}
		if got := newGlob(pattern).matches(name); got != want {
			t.Fatalf("%q, %q: %v, want %v", pattern, name, got, want)
		}
		if want {
			matched++
			if len(name) < newGlob(pattern).shortest() {
				t.Fatalf("%q matches %q, which is shorter than %d", pattern, name, newGlob(pattern).shortest())
			}
		}
	}
	if matched < 1000 {
		t.Errorf("only %d matches", matched)
	}
	if evil := newGlob(strings.Repeat("*a", 30) + "b"); evil.matches(strings.Repeat("a", 10000)) {
		t.Error("matches")
	}
}

// TestNetworks checks that networks contain the same addresses as with package netip.
func TestNetworks(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 14))
	inside := 0
	for range 20000 {
		var b [16]byte
		for i := range b {
			b[i] = byte(random.IntN(2)) << random.IntN(8)
		}
		addr := netip.AddrFrom16(b)
		if random.IntN(2) == 0 {
			addr = netip.AddrFrom4([4]byte(b[:4]))
		}
		prefix := netip.PrefixFrom(addr, random.IntN(addr.BitLen()+1)).Masked()
		b[random.IntN(16)] ^= 1 << random.IntN(8)
		asked := netip.AddrFrom16(b)
		if random.IntN(2) == 0 {
			asked = netip.AddrFrom4([4]byte(b[:4]))
		}
		f, want := Flow{Dst: netip.AddrPortFrom(asked, 1)}, prefix.Contains(asked)
		if got := (addressIn{newNetwork(prefix)}).holds(&f, nil); got != want {
			t.Fatalf("%s in %s: %v, want %v", asked, prefix, got, want)
		}
		if want {
			inside++
		}
	}
	if inside < 1000 {
		t.Errorf("only %d inside", inside)
	}
}

// TestLongListsOfDomains checks that a long list of names matches like its names one by
// one.
func TestLongListsOfDomains(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	label := func() string { return string(rune('a' + random.IntN(3))) }
	domain := func() string {
		name := label()
		for range random.IntN(4) {
			name += "." + label()
		}
		return name
	}
	matched := 0
	for range 300 {
		var patterns []string
		for range fewDomains + 1 + random.IntN(10) {
			pattern := domain()
			if random.IntN(2) == 0 {
				pattern = "*." + pattern
			}
			patterns = append(patterns, pattern)
		}
		many := newDomainIn(patterns)
		for range 50 {
			f, want := Flow{Domain: domain()}, false
			for _, pattern := range patterns {
				want = want || newDomainIn([]string{pattern}).holds(&f, nil)
			}
			if got := many.holds(&f, nil); got != want {
				t.Fatalf("%v, %s: %v, want %v", patterns, f.Domain, got, want)
			}
			if want {
				matched++
			}
		}
	}
	if matched < 100 {
		t.Errorf("only %d matches", matched)
	}
}

// TestTimesOfDayDivideTheDay checks that at each second of a day either a range matches
// or its complement.
func TestTimesOfDayDivideTheDay(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 30 {
		a, b := random.IntN(1440)*60, random.IntN(1440)*60
		if a == b {
			continue
		}
		inside := 0
		for second := range daySeconds {
			one, other := dayTime{from: a, until: b}.has(second), dayTime{from: b, until: a}.has(second)
			if one == other {
				t.Fatalf("%s and back: both %v at %d", dayTime{from: a, until: b}, one, second)
			}
			if one {
				inside++
			}
		}
		if inside != (b-a+daySeconds)%daySeconds {
			t.Fatalf("%s holds for %d s", dayTime{from: a, until: b}, inside)
		}
	}
}

// TestTimesOfDayWhenSummerTimeBegins checks that local time decides: on the day when
// summer time starts, the skipped hour never comes.
func TestTimesOfDayWhenSummerTimeBegins(t *testing.T) {
	p := mustParse(t, withMatch("time: 02:00-03:00 Europe/Brussels"))
	matched := 0
	for minute := range 24 * 60 {
		c := Conditions{Time: time.Date(2026, 3, 29, 0, minute, 0, 0, time.UTC)}
		if p.Decide(&Flow{}, &c).Name == "one" {
			matched++
		}
	}
	if matched != 0 {
		t.Errorf("it came for %d minutes", matched)
	}
}

// bench returns a policy of 50 rules of all kinds that do not match the flow.
func bench(t testing.TB) (*Policy, *Flow, *Conditions) {
	text := head + "plan: {limit: 5 GB}\nrules:\n"
	for i := range 50 {
		condition := []string{
			"uid: [%d, 20000-20999]", "package: com.example.app%d", "process: app-%d", "domain: [a%d.example, \"*.b.example\", \"*.c.example\"]",
			"protocol: udp, port: 50%02d", "address: [10.%d.0.0/16, 192.168.0.0/16]", "protocol: tcp, battery: < %d %%", "plan_left: < %d MB",
			"time: 22:%02d-06:00", "process: \"*agent%d*\"",
		}[i%10]
		text += fmt.Sprintf("  - {name: r%d, match: {%s}, action: block}\n", i, fmt.Sprintf(condition, i))
	}
	f := &Flow{
		UID: 10086, Packages: []string{"org.mozilla.firefox"}, Process: "mozilla.firefox", Domain: "www.static.example.org",
		Dst: netip.MustParseAddrPort("203.0.113.9:443"), Protocol: TCP,
	}
	c := &Conditions{
		Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Battery: Known(80),
		PlanLeft: Known(3e9), PlanLimit: Known(5e9), WiFiThroughput: Known(7e6),
	}
	return mustParse(t, text+tail), f, c
}

func TestDecideDoesNotAllocate(t *testing.T) {
	p, f, c := bench(t)
	if d := p.Decide(f, c); d.Name != "default" {
		t.Fatalf("taken by %s", d.Name)
	}
	length := 0
	if n := testing.AllocsPerRun(1000, func() { length += len(p.Decide(f, c).Why()) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if length == 0 {
		t.Error("no reason")
	}
}

func BenchmarkDecide(b *testing.B) {
	p, f, c := bench(b)
	b.ReportAllocs()
	for b.Loop() {
		p.Decide(f, c)
	}
}
