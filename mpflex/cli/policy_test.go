package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"mplab/internal/cmdline"
	"mplab/mpflex/internal/transport/sched"
	"mplab/mpflex/policy"
)

const manual = "docs/policy.md"

// run runs a command line in the root of the repository. It returns the output and the
// exit code.
func run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	t.Chdir("../..")
	var out, errs bytes.Buffer
	root := command()
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(args)
	err := root.Execute()
	var exit *cmdline.Error
	switch {
	case err == nil:
		return out.String(), errs.String(), 0
	case !errors.As(err, &exit):
		return out.String(), errs.String() + err.Error(), cmdline.BadInput
	case exit.Err != nil:
		return out.String(), errs.String() + exit.Err.Error(), exit.Code
	}
	return out.String(), errs.String(), exit.Code
}

func readManual(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", manual))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks returns the code blocks of the manual in a language.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	var found []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(readManual(t), -1) {
		found = append(found, m[1])
	}
	if len(found) == 0 {
		t.Fatalf("no %s in %s", language, manual)
	}
	return found
}

// TestCommandsOfTheManual checks that every command in the manual prints the output
// below it.
func TestCommandsOfTheManual(t *testing.T) {
	for _, block := range blocks(t, "console") {
		for _, session := range strings.Split("\n"+block, "\n$ ")[1:] {
			line, want, _ := strings.Cut(session, "\n")
			args := strings.Fields(line)[1:]
			t.Run(strings.Join(args[:2], " "), func(t *testing.T) {
				stdout, stderr, code := run(t, args...)
				if strings.TrimSpace(stdout) != strings.TrimSpace(want) || stderr != "" || code != 0 {
					t.Errorf("%s\n got: %s%s (%d)\nwant: %s", line, stdout, stderr, code, want)
				}
			})
		}
	}
}

// TestFilesOfTheManual checks that every file in the manual is valid, and that the file
// of the paper equals the one in the folder.
func TestFilesOfTheManual(t *testing.T) {
	ready, err := filepath.Glob("../policies/*.yaml")
	if err != nil || len(ready) < 2 {
		t.Fatalf("%v, %v", ready, err)
	}
	for _, file := range ready {
		if _, err := policy.Load(file, policy.Options{}); err != nil {
			t.Error(err)
		}
	}
	paper, err := os.ReadFile("../policies/nikravesh2016-fig18.yaml")
	if err != nil {
		t.Fatal(err)
	}
	shown := false
	for _, text := range blocks(t, "yaml") {
		if _, err := policy.Parse(manual, []byte(text), policy.Options{}); err != nil {
			t.Errorf("%s\n%v", text, err)
		}
		shown = shown || text == string(paper)
	}
	if !shown {
		t.Errorf("%s does not show the paper's policy as it is", manual)
	}
}

// TestManualIsComplete checks that the manual names every scheduler, and every
// condition in the order of checking.
func TestManualIsComplete(t *testing.T) {
	text := readManual(t)
	_, err := policy.Parse("FILE", []byte("policy: 1\nrules: [{name: a, match: {x: 1}, action: block}]\ndefault: {}\n"), policy.Options{})
	if err == nil {
		t.Fatal("x is a condition")
	}
	_, list, _ := strings.Cut(err.Error(), "Allowed: ")
	keys := strings.Split(list, ", ")
	if len(keys) < 11 {
		t.Fatalf("%v", keys)
	}
	for _, key := range keys {
		if !strings.Contains(text, "| `"+key+"` |") {
			t.Errorf("%s has no row for the condition %s", manual, key)
		}
	}
	for _, scheduler := range sched.Names() {
		if !strings.Contains(text, "`"+scheduler+"`") {
			t.Errorf("%s has no scheduler %s", manual, scheduler)
		}
	}
	order := "protocol, port, uid, battery, wifi_throughput, plan_left, address, process, package, domain, time."
	if !strings.Contains(text, order) {
		t.Errorf("%s does not have the order of the conditions", manual)
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	conditions := "time: 01:00-02:00 UTC, domain: a.example, package: p, process: p, address: 10.0.0.1, plan_left: < 1 B, wifi_throughput: < 1 kbit/s, battery: < 1 %, uid: 1, port: 1, protocol: tcp"
	rules := "policy: 1\nplan: {limit: 1 GB}\nrules: [{name: a, match: {" + conditions + "}, action: block}]\ndefault: {}\n"
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := policy.Load(file, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, condition := range strings.Split(p.Rules()[0].Match(), ", ") {
		key, _, _ := strings.Cut(condition, " ")
		got = append(got, key)
	}
	if strings.Join(got, ", ")+"." != order {
		t.Errorf("the order is %v", got)
	}
}

const fig18 = "mpflex/policies/nikravesh2016-fig18.yaml"

// TestFigure18 repeats the paper's experiment: which applications may wake the LTE
// radio.
func TestFigure18(t *testing.T) {
	p, err := policy.Load(filepath.Join("../..", fig18), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, lte := range map[string]policy.Use{
		"com.google.android.youtube": policy.Active, "com.android.vending": policy.Active,
		"com.skype.raider": policy.Excluded, "com.facebook.orca": policy.Excluded, "org.example.other": policy.Excluded,
	} {
		d := p.Decide(&policy.Flow{UID: 10100, Packages: []string{name}}, &policy.Conditions{})
		if d.Action != policy.Carry || d.Scheme.Use("rmnet0") != lte || d.Scheme.Use("wlan0") != policy.Active {
			t.Errorf("%s: %s", name, d.What())
		}
	}
}

func TestExplainAsJSON(t *testing.T) {
	stdout, stderr, code := run(t, "policy", "explain", fig18, "--package", "com.skype.raider", "--json")
	var got explanation
	decoder := json.NewDecoder(strings.NewReader(stdout))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&got); err != nil || code != 0 || stderr != "" {
		t.Fatalf("%v, %s (%d)", err, stderr, code)
	}
	if got.File != fig18 || got.Rule != "skype" || got.Action != "carry" || got.Label != 2 || got.Scheme == nil || got.Scheme.Name != "wifi-only" ||
		got.Scheme.Backup == nil || len(got.Rules) != 4 || !got.Rules[2].Taken || got.Rules[0].Matched || got.Rules[2].Line != got.Line {
		t.Errorf("%s", stdout)
	}
}

func TestBadPolicyCommands(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	text := "policy: 1\nrules:\n  - name: one\n    match: {domian: x}\n    action: wfi-only\nschemes: {wifi-only: {paths: wifi}}\ndefault: {}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		args string
		want string // of standard error; FILE is the path
	}{
		{"policy", "policy: give check or explain; see mpflex policy --help"},
		{"policy check", "accepts 1 arg(s), received 0"},
		{"policy check none.yaml", "open none.yaml: no such file or directory"},
		{"policy check FILE", "FILE:4: rules[0].match: unknown key 'domian'. Did you mean 'domain'? Allowed: address, battery, domain, package, plan_left, port, process, protocol, time, uid, wifi_throughput\n" +
			"FILE:5: rules[0].action: unknown action 'wfi-only'. Did you mean 'wifi-only'? Allowed: block, direct, wifi-only\n"},
		{"policy check " + fig18 + " --interfaces wlan0,rmnet0 x", "accepts 1 arg(s), received 2"},
		{"policy explain " + fig18 + " --domain 192.0.2.1", `--domain: "192.0.2.1" is not a host name`},
		{"policy explain " + fig18 + " --protocol sctp", "--protocol: unknown protocol 'sctp'. Allowed: tcp, udp"},
		{"policy explain " + fig18 + " --dst example.org:80", `--dst: "example.org:80" is not ADDRESS or ADDRESS:PORT with a numeric address`},
		{"policy explain " + fig18 + " --dst 192.0.2.1:80 --port 81", "--port: 81, but --dst has the port 80"},
		{"policy explain " + fig18 + " --time noon", `--time: "noon" is not a time such as 22:30 or 2026-11-15T22:30:00+01:00`},
		{"policy explain " + fig18 + " --battery 85", "--battery: '85' has no unit; give for example 20 %"},
		{"policy explain " + fig18 + " --wifi-throughput fast", "--wifi-throughput: 'fast' is not a quantity such as 2 Mbit/s"},
		{"policy explain " + fig18 + " --plan-left 10%", "--plan-left: 10%: the file has no plan; give an amount such as 300MB"},
		{"policy explain " + fig18 + " --plan-left some", "--plan-left: 'some' is not a quantity such as 500 MB, or 10 %"},
	}
	for _, c := range cases {
		t.Run(c.args, func(t *testing.T) {
			var args []string
			for _, arg := range strings.Fields(c.args) {
				args = append(args, strings.ReplaceAll(arg, "FILE", file))
			}
			stdout, stderr, code := run(t, args...)
			if want := strings.ReplaceAll(c.want, "FILE", file); stdout != "" || stderr != want || code != cmdline.BadInput {
				t.Errorf("%s%s (%d)\nwant: %s", stdout, stderr, code, want)
			}
		})
	}
	if shown := strings.ReplaceAll(cases[3].want, "FILE", "rules.yaml"); !strings.Contains(readManual(t), shown) {
		t.Errorf("%s does not show %s", manual, shown)
	}
}

func TestQuestions(t *testing.T) {
	now := time.Date(2026, 11, 15, 9, 30, 15, 0, time.FixedZone("here", 3600))
	plan := &policy.Plan{Limit: 5e9}
	cases := []struct {
		asked question
		want  policy.Conditions
	}{
		{question{}, policy.Conditions{Time: now, PlanLimit: policy.Known(5e9)}},
		{question{clock: "22:30", battery: "85%", planLeft: "10 %", wiFiIs: "2Mbps"}, policy.Conditions{
			Time: time.Date(2026, 11, 15, 22, 30, 0, 0, now.Location()), Battery: policy.Known(85), PlanLimit: policy.Known(5e9),
			PlanLeft: policy.Known(0.5e9), WiFiThroughput: policy.Known(2e6),
		}},
		{question{clock: "2026-07-01T01:00:00+02:00", planLeft: "300 MB"}, policy.Conditions{
			Time: time.Date(2026, 6, 30, 23, 0, 0, 0, time.UTC), PlanLimit: policy.Known(5e9), PlanLeft: policy.Known(300e6),
		}},
	}
	for _, c := range cases {
		_, got, err := c.asked.read(plan, now)
		if err != nil || !got.Time.Equal(c.want.Time) {
			t.Errorf("%+v: %s, %v", c.asked, got.Time, err)
		}
		got.Time = c.want.Time
		if got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.asked, got, c.want)
		}
	}
	asked := question{uid: 7, packages: []string{"p"}, process: "q", domain: "Example.org.", dst: "2001:db8::1", port: 443, protocol: "udp"}
	f, _, err := asked.read(nil, now)
	if err != nil || f.UID != 7 || f.Packages[0] != "p" || f.Process != "q" || f.Domain != "example.org" || f.Dst.String() != "[2001:db8::1]:443" || f.Protocol != policy.UDP {
		t.Errorf("%+v, %v", f, err)
	}
	asked = question{dst: "[2001:db8::1]:80", port: 80}
	if f, _, err := asked.read(nil, now); err != nil || f.Dst.String() != "[2001:db8::1]:80" {
		t.Errorf("%+v, %v", f, err)
	}
}
