package config

import (
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestGoodFiles(t *testing.T) {
	secret := write(t, "secret", "0123456789abcdef\n", 0o600)
	agent, err := LoadAgent(write(t, "agent.json", `{"listen": {"redirect": "127.0.0.1:3128", "dns": "127.0.0.1:3153"},
		"dns_server": "10.65.0.53:53", "proxy": "10.64.3.2:7002", "transport": "mptcp", "device": "", "mark": 28016,
		"secret_file": "`+secret+`", "congestion_control": "cubic", "log": "agent.jsonl"}`, 0o644))
	if err != nil || string(agent.Secret) != "0123456789abcdef" || agent.IdleTimeout() != DefaultIdleTimeout || agent.Mark != 28016 {
		t.Errorf("%+v, %v", agent, err)
	}
	flex, err := LoadAgent(write(t, "flex.json", `{"listen": {"redirect": "127.0.0.1:3128"}, "proxy": "10.64.3.2:7003", "transport": "mpflex",
		"paths": [{"device": "wlan0"}], "secret_file": "`+secret+`", "log": "agent.jsonl", "control": "agent.sock", "status_every_s": 2.5}`, 0o644))
	if err != nil || flex.Control != "agent.sock" || flex.StatusEvery() != 2500*time.Millisecond || agent.StatusEvery() != 0 {
		t.Errorf("%+v, %v", flex, err)
	}
	proxy, err := LoadProxy(write(t, "proxy.json", `{"listen": {"tcp": "10.64.3.2:7001", "mptcp": "10.64.3.2:7002"},
		"secret_file": "`+secret+`", "allow": ["10.65.0.0/16:53,80,443"], "congestion_control": "cubic", "log": "proxy.jsonl"}`, 0o644))
	if err != nil || proxy.MaxConnections != DefaultMaxConnections || len(proxy.Allowed) != 1 {
		t.Errorf("%+v, %v", proxy, err)
	}
	if got, want := proxy.PerClient, (ProxyPerClient{DefaultMaxConnections, DefaultClientSessions, DefaultClientStreams, DefaultClientUDPSockets}); got != want {
		t.Errorf("%+v", got)
	}
	private := write(t, "proxy.json", `{"listen": {"mpflex": "10.64.3.2:7003"}, "secret_file": "`+secret+`", "allow": ["10.65.0.0/16:*"]}`, 0o644)
	if _, err := LoadProxy(private); err == nil || err.Error() != private+": secret_file: "+secret+" holds 16 bytes; listen.mpflex needs 32, drawn at random" {
		t.Error(err)
	}
}

// TestBadFiles has invalid files, with the required message. FILE and SECRET are the
// paths.
func TestBadFiles(t *testing.T) {
	const agentRest = `"listen": {"redirect": "127.0.0.1:1"}, "proxy": "10.0.0.1:2", "transport": "tcp"`
	const flexRest = `"listen": {"redirect": "127.0.0.1:1"}, "proxy": "10.0.0.1:2", "transport": "mpflex"`
	const proxyRest = `"listen": {"tcp": "127.0.0.1:1"}, "allow": ["10.0.0.0/8:*"], "secret_file": "x"`
	cases := []struct{ role, text, want string }{
		{"agent", ``, `FILE: line 1, column 1: not valid JSON: unexpected end of JSON input`},
		{"agent", `[]`, `FILE: must be an object {…}, found []`},
		{"agent", "{\n\"mark\": }", `FILE: line 2, column 9: not valid JSON: invalid character '}' looking for beginning of value`},
		{"agent", `{"proxi": 1}`, `FILE: proxi: unknown key; allowed: congestion_control, control, device, devices, dns_server, idle_timeout_s, listen, log, mark, max_connections, paths, plain, policy_file, policy_state, proxy, secret_file, session, socks_users_file, status_every_s, transport`},
		{"agent", `{"Mark": 1}`, `FILE: Mark: unknown key; allowed: congestion_control, control, device, devices, dns_server, idle_timeout_s, listen, log, mark, max_connections, paths, plain, policy_file, policy_state, proxy, secret_file, session, socks_users_file, status_every_s, transport`},
		{"agent", `{"listen": {"redirekt": "x"}}`, `FILE: listen.redirekt: unknown key; allowed: dns, http, redirect, socks`},
		{"agent", `{"listen": {"redirect": "localhost:1"}}`, `FILE: listen.redirect: "localhost:1" is not ADDRESS:PORT with a numeric address`},
		{"agent", `{"listen": 7}`, `FILE: listen: must be an object {…}, found 7`},
		{"agent", `{"mark": "x"}`, `FILE: mark: must be a whole number, found "x"`},
		{"agent", `{"proxy": 7}`, `FILE: proxy: must be a string, found 7`},
		{"agent", `{}`, `FILE: listen: give at least one of redirect (the address that connections are redirected to), socks and http`},
		{"agent", `{"listen": {"redirect": "127.0.0.1:1"}}`, `FILE: proxy: missing; give the proxy's address and port`},
		{"agent", `{"listen": {"redirect": "127.0.0.1:1"}, "proxy": "10.0.0.1:2", "transport": "sctp"}`, `FILE: transport: "sctp" is not known; give "tcp", "mptcp" or "mpflex"`},
		{"agent", `{"listen": {"redirect": "127.0.0.1:1", "dns": "127.0.0.1:2"}, "proxy": "10.0.0.1:2", "transport": "tcp"}`, `FILE: dns_server: missing; listen.dns needs a server to ask`},
		{"agent", `{` + agentRest + `, "mark": -1}`, `FILE: mark: -1 is not within 0 and 4294967295`},
		{"agent", `{` + agentRest + `, "device": "an-interface-of-length"}`, `FILE: device: "an-interface-of-length" is longer than an interface name can be (15)`},
		{"agent", `{` + agentRest + `, "idle_timeout_s": -1}`, `FILE: idle_timeout_s: -1 is not within 0 and 1000000`},
		{"agent", `{` + agentRest + `}`, `FILE: secret_file: missing; give the file with the secret that agent and proxy share`},
		{"agent", `{` + agentRest + `, "devices": ["wlan0", "wlan0"]}`, `FILE: devices: "wlan0" is there twice`},
		{"agent", `{` + agentRest + `, "devices": ["wlan0", ""]}`, `FILE: devices: "" is no name of an interface: 1 to 15 bytes are needed`},
		{"agent", `{` + agentRest + `, "devices": ["wlan0"], "device": "rmnet0"}`, `FILE: devices: device is given, too; leave one of them out`},
		{"agent", `{` + flexRest + `, "paths": [{"device": "wlan0"}], "devices": ["wlan0"]}`, `FILE: devices: only the transport "tcp" has them, not "mpflex"`},
		{"agent", `{` + agentRest + `, "plain": true}`, `FILE: paths, plain: only the transport "mpflex" has them, not "tcp"`},
		{"agent", `{` + flexRest + `}`, `FILE: paths: 0 are given; between 1 and 64 are needed`},
		{"agent", `{` + flexRest + `, "device": "wlan0"}`, `FILE: device: the transport "mpflex" has one for each of paths`},
		{"agent", `{` + flexRest + `, "paths": [{"device": "wlan0"}, {"device": "wlan0"}]}`, `FILE: paths: "wlan0" is there twice`},
		{"agent", `{` + flexRest + `, "paths": [{"device": "wlan0"}, {"devise": "lte0"}]}`, `FILE: paths[1].devise: unknown key; allowed: backup, device`},
		{"agent", `{` + flexRest + `, "paths": [{"device": 3}]}`, `FILE: paths[0].device: must be a string, found 3`},
		{"agent", `{` + flexRest + `, "paths": [{"device": "wlan0"}], "session": {"scheduler": "best"}}`, `FILE: session.scheduler: no scheduler "best"; there are backup, earliest, minrtt, redundant, roundrobin, single, txdelay`},
		{"agent", `{` + flexRest + `, "paths": [{"device": "wlan0"}], "session": {"reinjection": {"eta": 2}}}`, `FILE: session.reinjection.eta: 2 is not within 0.05 and 1`},
		{"agent", `{` + flexRest + `, "paths": [{"device": "wlan0"}], "session": {"budget_bytes": 1000}}`, `FILE: session.budget_bytes: 1000 is not within 16777216 and 1099511627776`},
		{"agent", `{` + flexRest + `, "paths": [{"device": "wlan0"}], "session": {"feeding": "early"}}`, `FILE: session.feeding: "early" is not known; give "late" or "buffered"`},
		{"agent", `{` + flexRest + `, "paths": [{"device": "wlan0"}], "session": {"feeding": "late", "send_buffer_bytes": 65536}}`, `FILE: session.send_buffer_bytes: only with the feeding "buffered"`},
		{"agent", `{` + flexRest + `, "paths": [{"device": "wlan0"}], "session": {"feeding": "buffered", "send_buffer_bytes": 1}}`, `FILE: session.send_buffer_bytes: 1 is not within 16384 and 67108864`},
		{"agent", `{` + flexRest + `, "paths": [{"device": "wlan0"}], "session": {"window_bytes": 7}}`, `FILE: session.window_bytes: 7 is not within 65536 and 268435456`},
		{"agent", `{` + agentRest + `, "control": "/` + strings.Repeat("x", 107) + `"}`, `FILE: control: the path has 108 bytes, a Unix socket allows 107`},
		{"agent", `{` + agentRest + `, "log": "x", "status_every_s": 10}`, `FILE: status_every_s: only sessions have a status in the log; they need the transport "mpflex"`},
		{"agent", `{` + flexRest + `, "paths": [{"device": "wlan0"}], "status_every_s": 10}`, `FILE: status_every_s: the status is written to the log; give log, too`},
		{"agent", `{` + flexRest + `, "paths": [{"device": "wlan0"}], "log": "x", "status_every_s": -1}`, `FILE: status_every_s: -1 is not within 0.05 and 86400`},
		{"proxy", `{` + proxyRest + `, "log": "x", "status_every_s": 10}`, `FILE: status_every_s: only sessions have a status in the log; they need the transport "mpflex"`},
		{"proxy", `{` + proxyRest + `, "control": 7}`, `FILE: control: must be a string, found 7`},
		{"proxy", `{}`, `FILE: listen: give at least one of tcp, mptcp, mpflex, mpflex_plain`},
		{"proxy", `{"listen": {"tcp": "127.0.0.1:1", "mptcp": "127.0.0.1:1"}}`, `FILE: listen: mptcp and tcp are both 127.0.0.1:1; they need an address each`},
		{"proxy", `{"secret_file": "x", "listen": {"tcp": "127.0.0.1:1"}}`, `FILE: allow: name the destinations that agents may reach, for example "10.65.0.0/16:80,443"`},
		{"proxy", `{"secret_file": "x", "listen": {"tcp": "127.0.0.1:1"}, "allow": "10.0.0.0/8:*"}`, `FILE: allow: must be a list […], found "10.0.0.0/8:*"`},
		{"proxy", `{"secret_file": "x", "listen": {"tcp": "127.0.0.1:1"}, "allow": ["10.0.0.0/8"]}`, `FILE: allow[0]: "10.0.0.0/8": give the ports, for example "10.65.0.0/16:80,443" or "10.65.0.0/16:*"`},
		{"proxy", `{"secret_file": "x", "listen": {"tcp": "127.0.0.1:1"}, "allow": ["10.0.0.1/8:80"]}`, `FILE: allow[0]: "10.0.0.1/8:80": 10.0.0.1/8 has bits set after its length; did you mean 10.0.0.0/8?`},
		{"proxy", `{"secret_file": "x", "listen": {"tcp": "127.0.0.1:1"}, "allow": ["10.0.0.0/8:80,http"]}`, `FILE: allow[0]: "10.0.0.0/8:80,http": "http" is not a port (1 to 65535)`},
		{"proxy", `{"secret_file": "x", "listen": {"tcp": "127.0.0.1:1"}, "allow": ["fd00::/8:80"]}`, `FILE: allow[0]: "fd00::/8:80": an IPv6 prefix stands in brackets, for example "[fd00::/8]:443"`},
		{"proxy", `{"secret_file": "x", "listen": {"tcp": "127.0.0.1:1"}, "allow": ["lab:80"]}`, `FILE: allow[0]: "lab:80": "lab" is not a network in CIDR form`},
		{"proxy", `{` + proxyRest + `, "max_connections": -5}`, `FILE: max_connections: -5 is negative`},
		{"proxy", `{"listen": {"tcp": "127.0.0.1:1"}}`, `FILE: secret_file, clients_dir: missing; give the file with the secret that agent and proxy share, or the directory with such a file for each client`},
		{"proxy", `{` + proxyRest + `, "clients_dir": "y"}`, `FILE: secret_file, clients_dir: both are given; give one of them`},
		{"proxy", `{` + proxyRest + `, "per_client": {"streams": -1}}`, `FILE: per_client.streams: -1 is negative`},
		{"proxy", `{` + proxyRest + `, "per_client": {"paths": 1}}`, `FILE: per_client.paths: unknown key; allowed: connections, sessions, streams, udp_sockets`},
		{"agent", `{` + agentRest + `, "socks_users_file": "x"}`, `FILE: socks_users_file: only listen.socks has users; give it, too`},
		{"agent", `{"listen": {"socks": "127.0.0.1:1", "http": "127.0.0.1:1"}, "proxy": "10.0.0.1:2", "transport": "tcp"}`, `FILE: listen: socks and http are both 127.0.0.1:1; they need an address each`},
		{"agent", `{"listen": {"socks": "127.0.0.1:1", "http": "127.0.0.1:2"}, "proxy": "10.0.0.1:2", "transport": "tcp", "socks_users_file": "x"}`, `FILE: socks_users_file: listen.http needs no password; remove one of them`},
		{"agent", `{"listen": {"socks": "0.0.0.0:1080"}, "proxy": "10.0.0.1:2", "transport": "tcp"}`, `FILE: listen.socks: 0.0.0.0:1080 is not on the loopback interface: whoever reaches it could use the agent. Give a loopback address, such as 127.0.0.1:1080, or socks_users_file`},
		{"agent", `{"listen": {"http": "[::]:8118"}, "proxy": "10.0.0.1:2", "transport": "tcp"}`, `FILE: listen.http: [::]:8118 is not on the loopback interface: whoever reaches it could use the agent. Give a loopback address, such as 127.0.0.1:8118`},
		{"agent", `{"listen": {"http": "10.0.0.9:8118", "socks": "127.0.0.1:1080"}, "proxy": "10.0.0.1:2", "transport": "tcp", "socks_users_file": "x"}`, `FILE: listen.http: 10.0.0.9:8118 is not on the loopback interface: whoever reaches it could use the agent. Give a loopback address, such as 127.0.0.1:8118`},
		{"agent", `{` + agentRest + `, "mark": 1, "mark": 2}`, `FILE: mark: given twice; remove one`},
		{"agent", `{"listen": {"socks": "127.0.0.1:1", "http": "127.0.0.1:2", "socks": "127.0.0.1:3"}}`, `FILE: listen.socks: given twice; remove one`},
		{"agent", `{` + flexRest + `, "paths": [{"device": "wlan0", "backup": true, "device": "rmnet0"}]}`, `FILE: paths[0].device: given twice; remove one`},
		{"proxy", `{` + proxyRest + `, "\u0061llow": ["0.0.0.0/0:*"]}`, `FILE: allow: given twice; remove one`},
		{"short", `0123456789abcde` + "\n", `FILE: secret_file: SECRET holds 15 bytes; between 16 and 4096 are needed`},
		{"open", `0123456789abcdef`, `FILE: secret_file: SECRET may be used by others (mode 0640); run: chmod 600 SECRET`},
	}
	for _, c := range cases {
		t.Run(c.want, func(t *testing.T) {
			secret := ""
			text := c.text
			if c.role == "short" || c.role == "open" {
				mode := map[string]os.FileMode{"short": 0o600, "open": 0o640}[c.role]
				secret = write(t, "secret", c.text, mode)
				text = `{` + agentRest + `, "secret_file": "` + secret + `"}`
			}
			file := write(t, "config.json", text, 0o644)
			var err error
			if c.role == "proxy" {
				_, err = LoadProxy(file)
			} else {
				_, err = LoadAgent(file)
			}
			want := strings.NewReplacer("FILE", file, "SECRET", secret).Replace(c.want)
			if err == nil || err.Error() != want {
				t.Errorf("\ngot  %v\nwant %s", err, want)
			}
		})
	}
}

// TestClientsDir: every client has a file. The other keys determine its limits.
func TestClientsDir(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "clients")
	if err := os.Mkdir(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	file := write(t, "proxy.json", `{"listen": {"tcp": "127.0.0.1:1"}, "allow": ["10.0.0.0/8:*"], "clients_dir": "`+directory+`",
		"max_connections": 1000, "session": {"max_streams": 77}, "per_client": {"sessions": 3}}`, 0o644)
	if _, err := LoadProxy(file); err == nil || err.Error() != file+": clients_dir: "+directory+" holds no client; give each a file there, with its name, that holds its secret" {
		t.Error(err)
	}
	for _, name := range []string{"phone-1", "phone-2"} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(strings.Repeat(name, 6)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := LoadProxy(file)
	if err != nil || len(c.Clients) != 2 || c.Clients[1].Name != "phone-2" || string(c.Clients[1].Secret) != strings.Repeat("phone-2", 6) {
		t.Fatalf("%+v, %v", c.Clients, err)
	}
	if c.PerClient != (ProxyPerClient{Connections: 250, Sessions: 3, Streams: 77, UDPSockets: DefaultClientUDPSockets}) {
		t.Errorf("%+v", c.PerClient)
	}
	bad := filepath.Join(directory, "phone-3")
	if err := os.WriteFile(bad, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ReadClients(); err == nil || err.Error() != "clients_dir: "+bad+" holds 5 bytes; between 16 and 4096 are needed" {
		t.Error(err)
	}
}

func TestSocksUsers(t *testing.T) {
	load := func(text string, mode os.FileMode) (Agent, string, error) {
		users, secret := write(t, "users", text, mode), write(t, "secret", "0123456789abcdef\n", 0o600)
		c, err := LoadAgent(write(t, "agent.json", `{"listen": {"socks": "0.0.0.0:1"}, "proxy": "10.0.0.1:2", "transport": "tcp",
			"secret_file": "`+secret+`", "socks_users_file": "`+users+`"}`, 0o644))
		return c, users, err
	}
	c, _, err := load("me:pass:word \r\n\nyou:#2\n", 0o600)
	if want := map[string]string{"me": "pass:word ", "you": "#2"}; err != nil || !maps.Equal(c.SocksUsers, want) {
		t.Errorf("%q, %v", c.SocksUsers, err)
	}
	for _, bad := range []struct {
		text string
		mode os.FileMode
		want string
	}{
		{"me:x", 0o644, "FILE may be used by others (mode 0644); run: chmod 600 FILE"},
		{"\n", 0o600, "FILE has no user; a line is USER:PASSWORD"},
		{"me:x\nhunter2\n", 0o600, "FILE: line 2: no colon was found; a line is USER:PASSWORD"},
		{":hunter2", 0o600, "FILE: line 1: the user has 0 bytes; between 1 and 255 are allowed"},
		{"\nme:\n", 0o600, "FILE: line 2: the password has 0 bytes; between 1 and 255 are allowed"},
		{"me:" + strings.Repeat("x", 256), 0o600, "FILE: line 1: the password has 256 bytes; between 1 and 255 are allowed"},
		{"me:x\nyou:y\nme:hunter2\n", 0o600, "FILE: line 3: same user as in line 1; each is allowed once"},
	} {
		_, file, err := load(bad.text, bad.mode)
		want := "socks_users_file: " + strings.ReplaceAll(bad.want, "FILE", file)
		if err == nil || !strings.HasSuffix(err.Error(), ": "+want) {
			t.Errorf("\ngot  %v\nwant %s", err, want)
		}
	}
}

func TestAllow(t *testing.T) {
	allow, err := ParseAllow([]string{"10.65.0.0/16:53,80", "10.66.0.1/32:*", "[fd00::/8]:443"})
	if err != nil {
		t.Fatal(err)
	}
	for destination, want := range map[string]bool{
		"10.65.0.0:53": true, "10.65.255.255:80": true, "10.65.0.2:443": false, "10.64.0.2:80": false, "10.66.0.1:1": true,
		"10.66.0.2:1": false, "[fd00::1]:443": true, "[fd00::1]:80": false, "[fe80::1]:443": false,
		"[::ffff:10.65.0.1]:80": true, "127.0.0.1:80": false,
	} {
		if got := allow.Permits(netip.MustParseAddrPort(destination)); got != want {
			t.Errorf("%s: %v", destination, got)
		}
	}
	if (Allow{}).Permits(netip.MustParseAddrPort("10.65.0.1:80")) {
		t.Error("the empty list permits something")
	}
}

func TestWideRulesOpenNoSpecialAddress(t *testing.T) {
	wide, err := ParseAllow([]string{"0.0.0.0/0:*", "[::/0]:*", "126.0.0.0/7:*", "168.0.0.0/5:*"})
	if err != nil {
		t.Fatal(err)
	}
	narrow, err := ParseAllow([]string{
		"0.0.0.0/32:*", "127.0.0.0/8:*", "169.254.0.0/16:80", "224.0.0.0/4:*", "255.255.255.255/32:*", "[::/128]:*", "[::1/128]:*", "[fe80::/10]:*", "[ff00::/8]:*",
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, special := range []string{
		"127.0.0.1:80", "127.8.8.8:80", "0.0.0.0:80", "169.254.169.254:80", "224.0.0.1:80", "239.255.255.250:80", "255.255.255.255:80", "[::1]:80", "[::]:80",
		"[fe80::1]:80", "[ff02::1]:80", "[::ffff:127.0.0.1]:80", "[::ffff:0.0.0.0]:80", "[::ffff:169.254.169.254]:80", "[::ffff:224.0.0.1]:80",
	} {
		destination := netip.MustParseAddrPort(special)
		if wide.Permits(destination) {
			t.Errorf("a wide rule opens %s", special)
		}
		if !narrow.Permits(destination) {
			t.Errorf("a rule within its range does not open %s", special)
		}
		if none := netip.AddrPortFrom(destination.Addr(), 0); wide.Permits(none) || narrow.Permits(none) {
			t.Errorf("%s is open", none)
		}
	}
	for _, ordinary := range []string{"10.65.0.1:80", "126.255.255.255:80", "128.0.0.1:80", "169.253.255.255:80", "223.255.255.255:80", "[::2]:80", "[2001:db8::1]:80"} {
		if !wide.Permits(netip.MustParseAddrPort(ordinary)) {
			t.Errorf("%s is not open", ordinary)
		}
	}
}
