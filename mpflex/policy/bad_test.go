package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

const (
	head = "policy: 1\n"
	tail = "default: {}\n"
)

// withMatch returns a file of one rule with one condition, in line 4.
func withMatch(condition string) string {
	return head + "rules:\n  - name: one\n    match: {" + condition + "}\n    action: block\n" + tail
}

// withScheme returns a file without rules, with a default in line 3.
func withScheme(scheme string) string { return head + "rules: []\ndefault: {" + scheme + "}\n" }

const (
	matchKeys  = "address, battery, domain, package, plan_left, port, process, protocol, time, uid, wifi_throughput"
	pathNames  = "cellular, ethernet, wifi, and names of interfaces such as wlan0 or rmnet0"
	actionWhat = "block, direct, the name of a scheme, or a mapping with the keys scheduler, paths, backup is needed"
)

// badFiles has invalid files, with the required message. FILE is the path.
var badFiles = []struct{ text, want string }{
	// Files that are not YAML, or more than plain data.
	{"", "FILE:1: the file is empty; it needs the keys policy, rules and default"},
	{"# nothing\n", "FILE:1: the file is empty; it needs the keys policy, rules and default"},
	{"---\n", "FILE:2: found nothing, a mapping with the keys policy, plan, schemes, rules, default is needed"},
	{"- a\n", "FILE:1: found a list, a mapping with the keys policy, plan, schemes, rules, default is needed"},
	{"word\n", "FILE:1: found 'word', a mapping with the keys policy, plan, schemes, rules, default is needed"},
	{head + "rules: []\n" + tail + "---\na: 1\n", "FILE:4: a second document: one file holds one"},
	{head + "rules: \xff\n", "FILE:2: not UTF-8 text (byte 0xff)"},
	{head + "rules:\n\t- a\n", "FILE:3: a tab: YAML allows only spaces"},
	{head + "rules: [\n", "FILE:3: not YAML: did not find expected node content"},
	{head + "default: \"block\n", "FILE:3: not YAML: found unexpected end of stream"},
	{head + "rules: a: b\n", "FILE:2: not YAML: mapping values are not allowed in this context"},
	{head + "rules: []\n...\n@\n", "FILE:4: a value that begins with @ stands in quotes"},
	{withMatch("domain: *.example.org"), "FILE:4: a value that begins with * stands in quotes"},
	{withMatch("package: *"), "FILE:4: a value that begins with * stands in quotes"},
	{head + "rules:\n- name: one\n  match:\n    battery: > 20 %\n  action: block\n" + tail, "FILE:5: a value that begins with > stands in quotes"},
	{head + "rules:\n- name: one\n  match:\n    battery: >= 20 %\n  action: block\n" + tail, "FILE:5: a value that begins with > stands in quotes"},
	{withMatch("process: @x"), "FILE:4: a value that begins with @ stands in quotes"},
	{withMatch("process: &x y"), "FILE:4: a value that begins with & stands in quotes"},
	{head + "rules: []\ndefault: &x block\nplan: *x\n", "FILE:3: a value that begins with & stands in quotes"},
	{withMatch("process: !x y"), "FILE:4: a value that begins with ! stands in quotes"},
	{head + "<<: {rules: []}\n", "FILE:2: the key << is not known: write the values out"},
	{strings.Repeat("[", 30) + strings.Repeat("]", 30), "FILE:1: more than 20 levels deep"},
	{"#" + strings.Repeat("x", 1<<20), "FILE:1: larger than 1 MiB: not a rule file"},

	// The file as a whole.
	{"{}", "FILE:1: key 'policy' is missing\nFILE:1: key 'rules' is missing\nFILE:1: key 'default' is missing"},
	{"policy: 2\nrules: []\n" + tail, "FILE:1: policy: found '2', 1, the version of the format, is needed"},
	{"policy:\nrules: []\n" + tail, "FILE:1: policy: found nothing, 1, the version of the format, is needed"},
	{head + "rulez: []\nrules: []\n" + tail, "FILE:2: unknown key 'rulez'. Did you mean 'rules'? Allowed: default, plan, policy, rules, schemes"},
	{head + "rules: []\nrules: []\n" + tail, "FILE:3: key 'rules' is given twice (first in line 2)"},
	{head + "? [a]\n: 1\nrules: []\n" + tail, "FILE:2: a list as a key: a key is one word"},
	{head + "rules:\n" + tail, "FILE:2: rules: found nothing, a list of rules is needed"},
	{head + "rules: {a: b}\n" + tail, "FILE:2: rules: found a mapping, a list of rules is needed"},

	// The plan.
	{head + "plan: 5 GB\nrules: []\n" + tail, "FILE:2: plan: found '5 GB', a mapping with the keys limit, reset_day, interfaces is needed"},
	{head + "plan: {}\nrules: []\n" + tail, "FILE:2: plan: key 'limit' is missing"},
	{head + "plan: {limit: 5}\nrules: []\n" + tail, "FILE:2: plan.limit: '5' has no unit; give for example 500 MB"},
	{head + "plan: {limit: 5 gb}\nrules: []\n" + tail, "FILE:2: plan.limit: '5 gb': unknown unit 'gb'. Did you mean 'GB'? Allowed: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB"},
	{head + "plan: {limit: five}\nrules: []\n" + tail, "FILE:2: plan.limit: 'five' is not a quantity such as 500 MB"},
	{head + "plan: {limit: 1234567890123456 MB}\nrules: []\n" + tail, "FILE:2: plan.limit: '1234567890123456' is too large a number"},
	{head + "plan: {limit: 0 B}\nrules: []\n" + tail, "FILE:2: plan.limit: the limit is 0: remove the plan, and the cellular paths from the schemes"},
	{head + "plan:\n  limit: 5 GB\n  reset_day: 32\nrules: []\n" + tail, "FILE:4: plan.reset_day: '32' is not a day of the month (1 to 31)"},
	{head + "plan:\n  limit: 5 GB\n  interfaces: [wlan0, wlan0]\nrules: []\n" + tail, "FILE:4: plan.interfaces[1]: 'wlan0' is given twice (first in line 4)"},

	// Schemes.
	{head + "schemes: []\nrules: []\n" + tail, "FILE:2: schemes: found a list, a mapping of names to schemes is needed"},
	{head + "schemes: {block: {}}\nrules: []\n" + tail, "FILE:2: schemes.block: 'block' is an action of its own: give the scheme another name"},
	{head + "schemes: {" + strings.Repeat("a", 65) + ": {}}\nrules: []\n" + tail,
		"FILE:2: schemes: '" + strings.Repeat("a", 59) + "…' is longer than a name can be (64 characters)"},
	{head + "schemes: {both: wifi}\nrules: []\n" + tail, "FILE:2: schemes.both: found 'wifi', a mapping with the keys scheduler, paths, backup is needed"},
	{head + "schemes:\n  both: {path: wifi}\nrules: []\n" + tail, "FILE:3: schemes.both: unknown key 'path'. Did you mean 'paths'? Allowed: backup, paths, scheduler"},
	{withScheme("scheduler: minrt"), "FILE:3: default.scheduler: unknown scheduler 'minrt'. Did you mean 'minrtt'? Allowed: backup, default, earliest, minrtt, redundant, roundrobin, single, txdelay"},
	{withScheme("scheduler: [minrtt]"), "FILE:3: default.scheduler: found a list, the name of a scheduler is needed"},
	{withScheme("paths: []"), "FILE:3: default.paths: an empty list never matches"},
	{withScheme("paths:"), "FILE:3: default.paths: found nothing, the name of a path, or a list of them, is needed"},
	{withScheme("paths: wfii"), "FILE:3: default.paths: unknown path 'wfii'. Allowed: " + pathNames},
	{withScheme("paths: [wifi, lte]"), "FILE:3: default.paths[1]: unknown path 'lte'. Allowed: " + pathNames},
	{withScheme("paths: [wifi, [cellular]]"), "FILE:3: default.paths[1]: found a list, the name of a path is needed"},
	{withScheme("paths: wlan0-with-a-long-name"), "FILE:3: default.paths: unknown path 'wlan0-with-a-long-name'. Allowed: " + pathNames},
	{withScheme("paths: [wifi, wifi]"), "FILE:3: default.paths[1]: 'wifi' is given twice (first in line 3)"},
	{withScheme("paths: wifi, backup: [cellular, wifi]"), "FILE:3: default.backup: 'wifi' is among the paths already"},
	{withScheme("paths: [eth0, eth1, eth2, eth3, eth4], backup: [eth5, eth6, eth7, eth8]"), "FILE:3: default: 9 paths; a scheme has 8 at most"},

	// Rules.
	{head + "rules: [one]\n" + tail, "FILE:2: rules[0]: found 'one', a mapping with the keys name, match, action is needed"},
	{head + "rules:\n  - {}\n" + tail, "FILE:3: rules[0]: key 'name' is missing\nFILE:3: rules[0]: key 'match' is missing\nFILE:3: rules[0]: key 'action' is missing"},
	{head + "rules:\n  - {name: a, match: {port: 1}, action: block, scheme: x}\n" + tail, "FILE:3: rules[0]: unknown key 'scheme'. Allowed: action, match, name"},
	{head + "rules:\n  - {name: a, match: {port: 1}, action: block}\n  - {name: a, match: {port: 2}, action: block}\n" + tail,
		"FILE:4: rules[1].name: rule 'a' is given twice (first in line 3)"},
	{head + "rules:\n  - {name: default, match: {port: 1}, action: block}\n" + tail, "FILE:3: rules[0].name: 'default' is what the file ends with: give the rule another name"},
	{head + "rules:\n  - {name: [a], match: {port: 1}, action: block}\n" + tail, "FILE:3: rules[0].name: found a list, a name is needed"},
	{head + "rules:\n  - {name: \" \", match: {port: 1}, action: block}\n" + tail, "FILE:3: rules[0].name: found ' ', a name is needed"},
	{head + "rules:\n  - {name: \"a\\nb\", match: {port: 1}, action: block}\n" + tail, "FILE:3: rules[0].name: 'a\\nb' has a character that cannot be printed"},
	{head + "rules:\n  - {name: a, match: {port: 1}, action: wfi}\nschemes: {wifi: {}, both: {scheduler: minrtt}}\n" + tail,
		"FILE:3: rules[0].action: unknown action 'wfi'. Did you mean 'wifi'? Allowed: block, both, direct, wifi"},
	{head + "rules:\n  - {name: a, match: {port: 1}, action: [block]}\n" + tail, "FILE:3: rules[0].action: found a list, " + actionWhat},
	{head + "rules:\n  - {name: a, match: {port: 1}, action: }\n" + tail, "FILE:3: rules[0].action: found nothing, " + actionWhat},
	{head + "rules:\n  - {name: a, match: {port: 1, domain: a.example}, action: block}\n  - {name: b, match: {domain: A.example., port: 1}, action: direct}\n" + tail,
		"FILE:4: rules[1].match: same conditions as the rule in line 3: this rule is never reached"},
	{manyRules(1001), "FILE:1003: rules: 1001 rules; a file has 1000 at most"},

	// Conditions.
	{withMatch(""), "FILE:4: rules[0].match: no conditions: give the action for all other flows under default"},
	{head + "rules:\n  - {name: a, match: all, action: block}\n" + tail, "FILE:3: rules[0].match: found 'all', a mapping with the keys " + matchKeys + " is needed"},
	{withMatch("domian: a.example"), "FILE:4: rules[0].match: unknown key 'domian'. Did you mean 'domain'? Allowed: " + matchKeys},
	{withMatch("port: 1, port: 2"), "FILE:4: rules[0].match: key 'port' is given twice (first in line 4)"},
	{withMatch("protocol: sctp"), "FILE:4: rules[0].match.protocol: unknown protocol 'sctp'. Allowed: tcp, udp"},
	{withMatch("protocol: [tcp, udp]"), "FILE:4: rules[0].match.protocol: found a list, tcp or udp is needed"},
	{withMatch("port: https"), "FILE:4: rules[0].match.port: 'https' is not a port; give 1 to 65535, or a range such as 8000-8999"},
	{withMatch("port: 0"), "FILE:4: rules[0].match.port: '0' is not a port; give 1 to 65535, or a range such as 8000-8999"},
	{withMatch("port: [80, 65536]"), "FILE:4: rules[0].match.port[1]: '65536' is not a port; give 1 to 65535, or a range such as 8000-8999"},
	{withMatch("port: 90-80"), "FILE:4: rules[0].match.port: the range '90-80' ends before it begins"},
	{withMatch("port: [443, 443]"), "FILE:4: rules[0].match.port[1]: '443' is given twice (first in line 4)"},
	{withMatch("port: {from: 80}"), "FILE:4: rules[0].match.port: found a mapping, a port (1 to 65535) or a range such as 8000-8999, or a list of them, is needed"},
	{withMatch("uid: root"), "FILE:4: rules[0].match.uid: 'root' is not a uid; give 0 to 4294967294, or a range such as 10000-19999"},
	{withMatch("uid: 4294967295"), "FILE:4: rules[0].match.uid: '4294967295' is not a uid; give 0 to 4294967294, or a range such as 10000-19999"},
	{withMatch("uid: 20-10"), "FILE:4: rules[0].match.uid: the range '20-10' ends before it begins"},
	{withMatch("battery: 20 %"), "FILE:4: rules[0].match.battery: '20 %' is not a comparison such as '< 20 %'; it begins with <, <=, > or >= (the last two in quotes)"},
	{withMatch("battery: < 20"), "FILE:4: rules[0].match.battery: '20' has no unit; give for example 20 %"},
	{withMatch("battery: < 120 %"), "FILE:4: rules[0].match.battery: '120 %' is not within 0 % and 100 %"},
	{withMatch("battery: < 0 %"), "FILE:4: rules[0].match.battery: '< 0 %' never holds"},
	{withMatch("battery: < 2 MB"), "FILE:4: rules[0].match.battery: '2 MB': unknown unit 'MB'. Allowed: %"},
	{withMatch("wifi_throughput: < 2 mbit/s"), "FILE:4: rules[0].match.wifi_throughput: '2 mbit/s': unknown unit 'mbit/s'. Did you mean 'Mbit/s'? Allowed: kbit/s, Mbit/s, Gbit/s, kbps, Mbps, Gbps"},
	{withMatch("wifi_throughput: < x"), "FILE:4: rules[0].match.wifi_throughput: 'x' is not a quantity such as 2 Mbit/s"},
	{withMatch("plan_left: < 500 MB"), "FILE:4: rules[0].match.plan_left: the file has no plan: give its limit under the key plan"},
	{withMatch("plan_left: [< 10 %]"), "FILE:4: rules[0].match.plan_left: found a list, a comparison such as '< 500 MB' or '< 10 %' is needed\nFILE:4: rules[0].match.plan_left: the file has no plan: give its limit under the key plan"},
	{withMatch("address: example.org"), "FILE:4: rules[0].match.address: 'example.org' is not an address or a network; give for example 10.65.0.0/16 or 2001:db8::1"},
	{withMatch("address: 10.65.0.1/16"), "FILE:4: rules[0].match.address: 10.65.0.1/16 has bits set after its length; did you mean 10.65.0.0/16?"},
	{withMatch("address: \"fe80::1%wlan0\""), "FILE:4: rules[0].match.address: 'fe80::1%wlan0' is not an address or a network; give for example 10.65.0.0/16 or 2001:db8::1"},
	{withMatch("address: \"::ffff:10.0.0.0/104\""), "FILE:4: rules[0].match.address: ::ffff:10.0.0.0/104 is an IPv4 network in its IPv6 form; write it as IPv4"},
	{withMatch("process: a-name-of-sixteen"), "FILE:4: rules[0].match.process: 'a-name-of-sixteen' never matches: the kernel keeps the first 15 characters of a process's name"},
	{withMatch("package: org/mozilla"), "FILE:4: rules[0].match.package: 'org/mozilla' is not an Android package; give for example org.mozilla.firefox, or a pattern such as \"org.mozilla.*\""},
	{withMatch("domain: https://example.org/"), "FILE:4: rules[0].match.domain: 'https://example.org/' is not a domain; give a name such as example.org, or \"*.example.org\" for all names below it"},
	{withMatch("domain: [a.example, \"a.*.example\"]"), "FILE:4: rules[0].match.domain[1]: 'a.*.example' is not a domain; give a name such as example.org, or \"*.example.org\" for all names below it"},
	{withMatch("domain: 192.0.2.1"), "FILE:4: rules[0].match.domain: '192.0.2.1' is not a domain; give a name such as example.org, or \"*.example.org\" for all names below it"},
	{withMatch("domain: [Example.org, example.org.]"), "FILE:4: rules[0].match.domain[1]: 'example.org.' is given twice (first in line 4)"},
	{withMatch("time: 22:00"), "FILE:4: rules[0].match.time: '22:00' is not a range of times such as 22:00-06:00, or 22:00-06:00 Europe/Brussels"},
	{withMatch("time: 22:60-06:00"), "FILE:4: rules[0].match.time: '22:60-06:00': times of a day are 00:00 to 23:59, and 24:00 as an end"},
	{withMatch("time: 24:00-06:00"), "FILE:4: rules[0].match.time: '24:00-06:00': times of a day are 00:00 to 23:59, and 24:00 as an end"},
	{withMatch("time: 22:00-24:01"), "FILE:4: rules[0].match.time: '22:00-24:01': times of a day are 00:00 to 23:59, and 24:00 as an end"},
	{withMatch("time: 06:00-06:00"), "FILE:4: rules[0].match.time: '06:00-06:00' begins and ends at the same time; for the whole day leave it out"},
	{withMatch("time: 22:00-06:00 Europe/Brussel"), "FILE:4: rules[0].match.time: unknown time zone 'Europe/Brussel'; give a name such as Europe/Brussels or UTC, or none for the phone's own"},
	{withMatch("time: 22:00-06:00 Local"), "FILE:4: rules[0].match.time: unknown time zone 'Local'; give a name such as Europe/Brussels or UTC, or none for the phone's own"},

	// Several problems, by line.
	{"rules:\n  - name: one\n    match: {port: x, uid: y}\n    action: stop\ndefault: none\n",
		"FILE:1: key 'policy' is missing\n" +
			"FILE:3: rules[0].match.port: 'x' is not a port; give 1 to 65535, or a range such as 8000-8999\n" +
			"FILE:3: rules[0].match.uid: 'y' is not a uid; give 0 to 4294967294, or a range such as 10000-19999\n" +
			"FILE:4: rules[0].action: unknown action 'stop'. Allowed: block, direct\n" +
			"FILE:5: default: unknown action 'none'. Allowed: block, direct"},
}

func manyRules(n int) string {
	text := head + "rules:\n"
	for i := range n {
		text += fmt.Sprintf("  - {name: r%d, match: {port: %d}, action: block}\n", i, i+1)
	}
	return text + tail
}

func TestBadFiles(t *testing.T) {
	for _, c := range badFiles {
		p, err := Parse("FILE", []byte(c.text), Options{})
		if p != nil || err == nil || err.Error() != c.want {
			t.Errorf("%.300s\n got: %v\nwant: %s", c.text, err, c.want)
			continue
		}
		var bad *FileError
		if !errors.As(err, &bad) || len(bad.Problems) != 1+strings.Count(c.want, "\n") {
			t.Errorf("%.300s\n%T", c.text, err)
		}
	}
}

func TestInterfacesOfAPhone(t *testing.T) {
	options := Options{Interfaces: []string{"wlan0", "tun7"}}
	want := "FILE:3: default.paths: unknown path 'rmnet0'. Allowed: cellular, ethernet, tun7, wifi, wlan0"
	if _, err := Parse("FILE", []byte(withScheme("paths: rmnet0")), options); err == nil || err.Error() != want {
		t.Errorf("%v\nwant: %s", err, want)
	}
	if _, err := Parse("FILE", []byte(withScheme("paths: [tun7, cellular]")), options); err != nil {
		t.Error(err)
	}
}

func TestTooManySchemes(t *testing.T) {
	for n, want := range map[int]string{256: "more than 255 schemes", 255: "the schemes take 4486 bytes; there is room for 4096", 230: ""} {
		text := head + "schemes:\n"
		for i := range n {
			text += fmt.Sprintf("  s%d: {paths: eth%d}\n", i, i)
		}
		_, err := Parse("FILE", []byte(text+"rules: []\n"+tail), Options{})
		if (err == nil) != (want == "") || err != nil && err.Error() != "FILE: "+want {
			t.Errorf("%d schemes: %v", n, err)
		}
	}
}

// FuzzParse: any bytes give a policy, or a list of problems whose lines exist in the
// file. A policy decides any flow.
func FuzzParse(f *testing.F) {
	for _, c := range badFiles {
		if len(c.text) < 500 {
			f.Add([]byte(c.text))
		}
	}
	f.Add([]byte(goodFile))
	f.Add([]byte(": \r0"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse("FILE", data, Options{})
		if err == nil {
			if d := p.Decide(&Flow{}, &Conditions{}); d.Action == 0 || d.Why() == "" {
				t.Errorf("%+v", d)
			}
			return
		}
		var bad *FileError
		if !errors.As(err, &bad) {
			return
		}
		last := 1 // lines as YAML counts them
		for _, c := range string(data) {
			if strings.ContainsRune("\n\r\u0085\u2028\u2029", c) {
				last++
			}
		}
		sorted := slices.IsSortedFunc(bad.Problems, func(a, b Problem) int { return a.Line - b.Line })
		if len(bad.Problems) == 0 || !sorted || bad.Problems[0].Line < 1 || bad.Problems[len(bad.Problems)-1].Line > last+1 {
			t.Errorf("%v", err)
		}
	})
}
