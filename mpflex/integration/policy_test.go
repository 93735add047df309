package integration

import (
	"errors"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"mplab/mpflex/connlog"
)

const pinned = `policy: 1
rules:
  - name: pinned
    match: {port: 8080}
    action: {scheduler: single, paths: wlan0}
default: {scheduler: roundrobin, paths: [wlan0, rmnet0]}
`

// withRules returns the settings of an agent with a rule file.
func withRules(t *testing.T, text string, v values) (settings values, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "rules.yaml")
	writeRules(t, file, text)
	settings = values{"policy_file": file}
	maps.Copy(settings, v)
	return settings, file
}

func writeRules(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// exchangeMuch sends more bytes in both directions than one path can carry in time.
func exchangeMuch(t *testing.T, address string) {
	t.Helper()
	conn := dialPhone(t, address)
	roundTrip(t, conn, payload(5, 8<<20))
	conn.Close()
}

// directions returns the interfaces that carried a connection out of and into a
// program.
func directions(c connlog.Connection) (out, in string) {
	var o, i []string
	for _, p := range c.Paths {
		if p.BytesOut+p.CopiesOut > 0 {
			o = append(o, p.Interface)
		}
		if p.BytesIn > 0 {
			i = append(i, p.Interface)
		}
	}
	slices.Sort(o)
	slices.Sort(i)
	return strings.Join(o, " "), strings.Join(i, " ")
}

// expectPaths checks that a connection used these interfaces in both directions, and
// that both logs have its scheme. It returns the agent's record.
func expectPaths(t *testing.T, s setup, address string, nth int, rule, scheme, want string) connlog.Connection {
	t.Helper()
	here, there := connections(t, s.agent, address, nth)[nth-1], connections(t, s.proxy, address, nth)[nth-1]
	if here.Rule != rule || here.Scheme != scheme || there.Scheme != scheme {
		t.Errorf("%s: rule %q, scheme %q, %q at the proxy", address, here.Rule, here.Scheme, there.Scheme)
	}
	up, down := directions(here)
	if downThere, upThere := directions(there); up != want || down != want || upThere != want || downThere != want {
		t.Errorf("%s: up over %q, down over %q, not %q; at the proxy %q and %q", address, up, down, want, upThere, downThere)
	}
	return here
}

func TestPolicyPinsAPort(t *testing.T) {
	settings, _ := withRules(t, pinned, flex(false))
	s := start(t, settings)
	attached(t, s.agent)
	serveOrigin(t, "10.65.0.2:8080", echo)
	serveOrigin(t, web, echo)
	exchangeMuch(t, "10.65.0.2:8080")
	expectPaths(t, s, "10.65.0.2:8080", 1, "pinned", "single over wlan0", "wlan0")
	exchangeMuch(t, web)
	expectPaths(t, s, web, 1, "default", "roundrobin over wlan0, rmnet0", "rmnet0 wlan0")
}

// reload lets an agent reload its rules and returns the log record.
func reload(t *testing.T, agent *program) connlog.Policy {
	t.Helper()
	before := len(records[connlog.Policy](t, agent.log, "policy"))
	if err := agent.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	var all []connlog.Policy
	eventually(t, "a record of the rules", func() bool {
		all = records[connlog.Policy](t, agent.log, "policy")
		return len(all) > before
	})
	return all[len(all)-1]
}

func TestPolicyIsReadAgain(t *testing.T) {
	settings, file := withRules(t, pinned, flex(false))
	s := start(t, settings)
	attached(t, s.agent)
	serveOrigin(t, "10.65.0.2:8080", echo)
	const address = "10.65.0.2:8080"
	exchangeMuch(t, address)
	expectPaths(t, s, address, 1, "pinned", "single over wlan0", "wlan0")

	writeRules(t, file, strings.ReplaceAll(pinned, "paths: wlan0", "paths: rmnet0"))
	if got := reload(t, s.agent); got.Error != "" || got.Rules != 1 {
		t.Fatalf("%+v", got)
	}
	exchangeMuch(t, address)
	expectPaths(t, s, address, 2, "pinned", "single over rmnet0", "rmnet0")

	writeRules(t, file, strings.ReplaceAll(pinned, "single", "singel"))
	if got := reload(t, s.agent); !strings.Contains(got.Error, "Did you mean 'single'?") || got.Rules != 1 {
		t.Errorf("a bad file: %+v", got)
	}
	exchangeMuch(t, address)
	expectPaths(t, s, address, 3, "pinned", "single over rmnet0", "rmnet0")
}

func TestPolicyOfOwnersAndNames(t *testing.T) {
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	settings, _ := withRules(t, `policy: 1
rules:
  - name: host
    match: {domain: "*.pinned.lab"}
    action: {scheduler: single, paths: rmnet0}
  - name: looked up
    match: {domain: dl.lab}
    action: {scheduler: single, paths: wlan0}
  - name: program
    match: {process: "`+strings.TrimSpace(string(comm))+`", port: 443}
    action: {scheduler: roundrobin, paths: wlan0}
default: {scheduler: roundrobin, paths: [wlan0, rmnet0]}
`, flex(false))
	s := start(t, settings)
	attached(t, s.agent)
	nameServer(t, -1)
	for _, address := range []string{"10.65.0.7:80", "10.65.0.7:443", "10.65.0.7:8080", web} {
		serveOrigin(t, address, echo)
	}
	conn := dialPhone(t, "10.65.0.7:80")
	roundTrip(t, conn, []byte("GET / HTTP/1.1\r\nHost: www.Pinned.lab\r\n\r\n"))
	conn.Close()
	if got := expectPaths(t, s, "10.65.0.7:80", 1, "host", "single over rmnet0", "rmnet0"); got.Domain != "www.pinned.lab" {
		t.Errorf("%+v", got)
	}
	exchangeMuch(t, "10.65.0.7:443")
	expectPaths(t, s, "10.65.0.7:443", 1, "program", "roundrobin over wlan0", "wlan0")
	exchangeMuch(t, "10.65.0.7:8080")
	expectPaths(t, s, "10.65.0.7:8080", 1, "default", "roundrobin over wlan0, rmnet0", "rmnet0 wlan0")
	ask(t, "dl.lab.", dnsmessage.TypeA, 7)
	conn = dialPhone(t, web)
	roundTrip(t, conn, []byte("GET / HTTP/1.1\r\nHost: other.pinned.lab\r\n\r\n"))
	conn.Close()
	expectPaths(t, s, web, 1, "host", "single over rmnet0", "rmnet0") // the application's own name has priority
	exchangeMuch(t, web)
	if got := expectPaths(t, s, web, 2, "looked up", "single over wlan0", "wlan0"); got.Domain != "dl.lab" {
		t.Errorf("%+v", got)
	}
}

func TestPolicyBlocksAndLetsPast(t *testing.T) {
	for name, transport := range transports() {
		t.Run(name, func(t *testing.T) {
			settings, _ := withRules(t, `policy: 1
rules:
  - name: adverts
    match: {domain: dl.lab}
    action: block
  - name: forbidden
    match: {port: 443}
    action: block
  - name: home
    match: {address: 10.64.0.0/16}
    action: direct
default: {scheduler: minrtt}
`, transport)
			settings["listen"] = values{"socks": socksServer, "redirect": "127.0.0.1:3128"}
			s := start(t, settings)
			nameServer(t, -1)
			serveOrigin(t, "10.65.0.2:443", echo)
			if err := exchangeOnce(t, "10.65.0.2:443", true); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("blocked: %v", err)
			}
			if got := connections(t, s.agent, "10.65.0.2:443", 1)[0]; got.Status != connlog.Blocked || got.Rule != "forbidden" || !strings.Contains(got.Error, "rule forbidden") {
				t.Errorf("%+v", got)
			}
			if _, code := connectSocks(t, byName("dl.lab", 80), ""); code != 2 {
				t.Errorf("blocked: the reply is %d", code)
			}
			if got := connections(t, s.agent, web, 1)[0]; got.Status != connlog.Blocked || got.Rule != "adverts" || got.Domain != "dl.lab" {
				t.Errorf("%+v", got)
			}

			const home = "10.64.1.1:8080"
			var listener net.Listener
			var err error
			inNode(t, "router", func() { listener, err = net.Listen("tcp4", home) })
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			go func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					go echo(conn.(*net.TCPConn))
				}
			}()
			conn, code := connectSocks(t, []byte{1, 10, 64, 1, 1, 8080 >> 8, 8080 & 0xff}, "")
			if code != 0 {
				t.Fatalf("direct: the reply is %d", code)
			}
			roundTrip(t, conn, payload(1, 100_000))
			conn.Close()
			got := connections(t, s.agent, home, 1)[0]
			if got.Status != connlog.Closed || got.Transport != "direct" || got.Rule != "home" || got.BytesDown != 100_000 || got.Remote.String() != home || got.Scheme != "" {
				t.Errorf("%+v", got)
			}
			conn, code = connectSocks(t, []byte{1, 10, 64, 1, 1, 0, 9}, "")
			_, err = io.ReadAll(conn)
			// A rule needs the host name. With a session the application gets its reply
			// first, so that it sends bytes that may contain a name.
			if early := name == "mpflex"; early && (code != 0 || !errors.Is(err, syscall.ECONNRESET)) || !early && (code != 5 || err != nil) {
				t.Errorf("direct, nobody listens: the reply is %d, %v", code, err)
			}
			for _, r := range records[connlog.Connection](t, s.proxy.log, "connection") {
				if r.Dst.AddrPort == netip.MustParseAddrPort(home) {
					t.Errorf("it came to the proxy: %+v", r)
				}
			}
		})
	}
}

func TestBadPolicyAtTheStart(t *testing.T) {
	needLab(t)
	settings, file := withRules(t, "policy: 1\nrules:\n  - name: a\n    match: {prot: 80}\n    action: block\ndefault: block\n", flex(false))
	_, stderr, code := once(t, "phone", "agent", "--config", writeConfig(t, agentConfig(t, settings)))
	if code != 2 || !strings.Contains(stderr, file+":4: ") || !strings.Contains(stderr, "unknown key 'prot'") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestPolicyBlocksDatagrams(t *testing.T) {
	settings, _ := withRules(t, "policy: 1\nrules:\n  - name: no calls\n    match: {protocol: udp, port: 8080}\n    action: block\ndefault: {scheduler: minrtt}\n", withSocks(flex(false)))
	s := start(t, settings)
	startEcho(t, "10.65.0.5:8080")
	startEcho(t, "10.65.0.5:443")
	attached(t, s.agent)
	if got := udpJitter(t, "10.65.0.5:8080", "--seconds", "0.2"); got.OK || got.Answered != 0 {
		t.Errorf("it was not blocked: %+v", got)
	}
	if got := udpJitter(t, "10.65.0.5:443", "--seconds", "0.2"); !got.OK || got.Answered != got.Sent {
		t.Errorf("it was blocked: %+v", got)
	}
	var all []connlog.Association
	eventually(t, "two associations", func() bool {
		all = records[connlog.Association](t, s.agent.log, "udp")
		return len(all) == 2
	})
	if all[0].Blocked == 0 || all[0].DatagramsUp != 0 || all[1].Blocked != 0 {
		t.Errorf("%+v", all)
	}
}
