package logger_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mplab/internal/testkit"
	"mplab/phonelog/internal/cli"
	"mplab/phonelog/internal/collector/lines"
)

// The program runs in separate namespaces, if the machine permits them: the
// test binary runs itself again, both inside and as phonelog.
const (
	insideVariable = "LOGGER_TEST_INSIDE"
	argsVariable   = "LOGGER_TEST_ARGS"
)

func unshareArgs() []string {
	args := []string{"--net", "--mount", "--fork", "--kill-child"}
	if os.Getuid() != 0 {
		args = append([]string{"--user", "--map-root-user"}, args...)
	}
	return args
}

func TestMain(m *testing.M) {
	if args := os.Getenv(argsVariable); args != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		os.Exit(cli.Execute(ctx, strings.Split(args, "\n")))
	}
	if os.Getenv(insideVariable) != "" || exec.Command("unshare", append(unshareArgs(), "ip", "link", "add", "probe0", "type", "veth", "peer", "name", "probe1")...).Run() != nil {
		os.Exit(m.Run())
	}
	cmd := exec.Command("unshare", append(append(unshareArgs(), os.Args[0]), os.Args[1:]...)...)
	cmd.Env = append(os.Environ(), insideVariable+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	_ = cmd.Run()
	os.Exit(cmd.ProcessState.ExitCode())
}

// phone is the test environment: a phone with WiFi, Android's commands, and a
// collector behind the WiFi in a separate network.
type phone struct {
	t        *testing.T
	dir      string
	commands string // directory with their outputs
	config   string
	control  string
	server   string // store of the collector
	routerID int    // process in the collector's network
}

func (p *phone) run(name string, args ...string) {
	p.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		p.t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
}

// says changes the output of an Android command.
func (p *phone) says(command, text string) {
	p.t.Helper()
	temporary := filepath.Join(p.commands, command+".new")
	if err := os.WriteFile(temporary, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(temporary, filepath.Join(p.commands, command+".txt")); err != nil {
		p.t.Fatal(err)
	}
}

func golden(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("android", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const (
	charging    = "  AC powered: false\n  USB powered: true\n  status: 2\n  level: 50\n  scale: 100\n"
	discharging = "  AC powered: false\n  USB powered: false\n  status: 3\n  level: 50\n  scale: 100\n"
)

func newPhone(t *testing.T) *phone {
	t.Helper()
	if os.Getenv(insideVariable) == "" {
		t.Skip("network namespaces are not permitted here")
	}
	p := &phone{t: t, dir: t.TempDir()}
	p.commands = filepath.Join(p.dir, "commands")
	if err := os.Mkdir(p.commands, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{
		"cmd":     `test "$*" = "wifi status" && exec cat ` + p.commands + `/wifi.txt`,
		"dumpsys": `exec cat ` + p.commands + `/$1.txt`,
		"getprop": `case $1 in *release) echo 11;; *sdk) echo 30;; *model) echo Test Phone;; esac`,
	} {
		if err := os.WriteFile(filepath.Join(p.commands, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.says("wifi", golden(t, "wifi-11-cmd.txt"))
	p.says("telephony.registry", golden(t, "cell-11-nsa-two-slots.txt"))
	p.says("location", golden(t, "location-12.txt"))
	p.says("battery", discharging)
	if _, err := os.Stat("/sys/class/power_supply"); err == nil { // the power supply of a laptop
		if err := unix.Mount("tmpfs", "/sys/class/power_supply", "tmpfs", 0, ""); err != nil {
			t.Skip("the machine's own battery cannot be hidden: ", err)
		}
		t.Cleanup(func() { _ = unix.Unmount("/sys/class/power_supply", unix.MNT_DETACH) })
	}
	router := exec.Command("unshare", "--net", "sleep", "1000")
	if err := router.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = router.Process.Kill(); _ = router.Wait() })
	p.routerID = router.Process.Pid
	own, _ := os.Readlink("/proc/self/ns/net")
	testkit.Eventually(t, "a network of its own", func() bool {
		other, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", p.routerID))
		return err == nil && other != own
	})
	id := strconv.Itoa(p.routerID)
	p.run("ip", "link", "add", "wlan0", "type", "veth", "peer", "name", "wlan-peer")
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", "wlan0").Run() })
	p.run("ip", "link", "set", "wlan-peer", "netns", id)
	for _, line := range []string{"addr add 10.7.0.1/24 dev wlan-peer", "link set wlan-peer up", "link set lo up"} {
		p.run("nsenter", append([]string{"-t", id, "-n", "ip"}, strings.Fields(line)...)...)
	}
	p.run("ip", "addr", "add", "10.7.0.2/24", "dev", "wlan0")
	p.run("ip", "link", "set", "wlan0", "addrgenmode", "none", "up")
	p.run("ip", "route", "add", "default", "via", "10.7.0.1")
	return p
}

// phonelog returns the command of the program on the phone; with inRouter, in
// the collector's network.
func (p *phone) phonelog(inRouter bool, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(p.t.Context(), os.Args[0])
	if inRouter {
		cmd = exec.CommandContext(p.t.Context(), "nsenter", "-t", strconv.Itoa(p.routerID), "-n", os.Args[0])
	}
	cmd.Env = append(os.Environ(), argsVariable+"="+strings.Join(args, "\n"), "PATH="+p.commands+":"+os.Getenv("PATH"))
	cmd.Stderr = os.Stderr
	return cmd
}

func (p *phone) start(inRouter bool, args ...string) *exec.Cmd {
	p.t.Helper()
	cmd := p.phonelog(inRouter, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	var ready struct{ Event string }
	if err := json.NewDecoder(out).Decode(&ready); err != nil || ready.Event != "ready" {
		p.t.Fatalf("%+v, %v", ready, err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return cmd
}

func (p *phone) file(name string, text []byte) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// collector starts a collector behind the WiFi.
func (p *phone) collector() {
	p.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"collector.lab"}, IPAddresses: []net.IP{net.IPv4(10, 7, 0, 1)}, BasicConstraintsValid: true, IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		p.t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		p.t.Fatal(err)
	}
	certificate := p.file("ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	keyFile := p.file("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	tokens := p.file("tokens", []byte("test-phone:token-of-the-phone\n"))
	p.server = filepath.Join(p.dir, "collected")
	config := p.file("collector.json", []byte(fmt.Sprintf(`{"listen": "10.7.0.1:8443", "tls": {"certificate_file": %q, "key_file": %q}, "tokens_file": %q, "store": %q, "min_free_bytes": 1}`,
		certificate, keyFile, tokens, p.server)))
	p.start(true, "collector", "--config", config)
}

// configure writes the configuration of the logger; more holds further keys.
func (p *phone) configure(more string) {
	p.control = filepath.Join(p.dir, "control")
	token := p.file("token", []byte("token-of-the-phone\n"))
	p.config = p.file("logger.json", []byte(fmt.Sprintf(`{"device": "test-phone", "store": %q, "control": %q,
		"periods": {"network_s": 1, "wifi_s": 0.1, "cell_s": 0.1, "battery_s": 0.1, "location_s": 0.1}, "heartbeat_s": 1,
		"files": {"age_s": 1, "sync_s": 0.2},
		"upload": {"url": "https://collector.lab:8443", "connect": "10.7.0.1:8443", "token_file": %q, "ca_file": %q, "every_s": 0.1, "backoff_s": 0.1, "backoff_most_s": 1}%s}`,
		filepath.Join(p.dir, "store"), p.control, token, filepath.Join(p.dir, "ca.pem"), more)))
}

// status returns the status of the logger.
func (p *phone) status() string {
	out, _ := p.phonelog(false, "logger", "status", "--config", p.config).Output()
	return string(out)
}

// collected returns the collector's records, ordered by run and number, and
// checks all of them.
func (p *phone) collected() []map[string]any {
	p.t.Helper()
	checker := lines.New(0)
	files, _ := filepath.Glob(filepath.Join(p.server, "test-phone", "*.jsonl"))
	var all []map[string]any
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			p.t.Fatal(err)
		}
		for text := range bytes.Lines(data) {
			var record map[string]any
			decoder := json.NewDecoder(bytes.NewReader(text))
			decoder.UseNumber()
			if err := decoder.Decode(&record); err != nil {
				p.t.Fatalf("%q: %v", text, err)
			}
			if record["kind"] == "batch" {
				continue
			}
			if bad := checker.Check(text); bad != nil {
				p.t.Errorf("%v: %s", bad, text)
			}
			all = append(all, record)
		}
	}
	return all
}

// has reports whether the collector has a record with the given field values.
func (p *phone) has(fields ...any) bool {
	return slices.ContainsFunc(p.collected(), func(r map[string]any) bool {
		for i := 0; i < len(fields); i += 2 {
			if fmt.Sprint(r[fields[i].(string)]) != fmt.Sprint(fields[i+1]) {
				return false
			}
		}
		return true
	})
}

// TestPhone covers a phone from its start to its last upload. It records
// changes, keeps them while uploads are blocked, uploads over WiFi while
// charging, is killed, and loses nothing.
func TestPhone(t *testing.T) {
	p := newPhone(t)
	p.collector()
	p.configure(`, "myip": {"every_s": 3600}`)
	program := p.start(false, "logger", "--config", p.config)

	testkit.Eventually(t, "it waits to be charged", func() bool { return strings.Contains(p.status(), "waits: the phone is not charged") })
	if len(p.collected()) > 0 {
		t.Error("something was uploaded")
	}
	status := p.status()
	for _, want := range []string{"logger of test-phone", "wifi       from cmd wifi status", "cell       from dumpsys telephony.registry", "battery    from dumpsys battery", "network    from netlink"} {
		if !strings.Contains(status, want) {
			t.Errorf("no %q in\n%s", want, status)
		}
	}
	p.says("wifi", strings.Replace(golden(t, "wifi-11-cmd.txt"), "RSSI: -61", "RSSI: -77", 1))
	p.run("ip", "addr", "add", "10.7.0.9/24", "dev", "wlan0")
	p.says("battery", charging)
	testkit.Eventually(t, "what was recorded is uploaded", func() bool {
		return p.has("kind", "wifi", "why", "change", "rssi_dbm", -77, "ssid", "Attic") && p.has("kind", "battery", "plugged", "usb", "why", "change")
	})
	for _, fields := range [][]any{
		{"kind", "start", "device", "test-phone", "android", 11, "sdk", 30, "model", "Test Phone"},
		{"kind", "wifi", "why", "first", "rssi_dbm", -61, "bssid", "3c:37:12:aa:bb:01", "frequency_mhz", 5180},
		{"kind", "cell", "why", "first", "slot", 0, "type", "LTE", "override", "NR_NSA", "operator", 26201, "cell_id", 12345601},
		{"kind", "interface", "interface", "wlan0", "addresses", "[10.7.0.2/24 10.7.0.9/24]", "usable", true, "default_ipv4", true},
		{"kind", "battery", "why", "first", "plugged", "none", "level_percent", 50},
		{"kind", "wifi", "why", "repeat"},
	} {
		if !p.has(fields...) {
			t.Errorf("no record with %v", fields)
		}
	}
	testkit.Eventually(t, "a heartbeat, the own address, the routes", func() bool {
		return p.has("kind", "heartbeat") && p.has("kind", "myip", "interface", "wlan0", "address", "10.7.0.2") &&
			p.has("kind", "routes", "routes", "[map[family:4 gateway:10.7.0.1 interface:wlan0 metric:0 table:254 type:unicast]]")
	})
	if p.has("kind", "location") {
		t.Error("the location was recorded, and nobody asked for it")
	}

	// Without WiFi it waits; the events are kept, even after kill -9.
	p.run("ip", "link", "set", "wlan0", "down")
	p.says("wifi", golden(t, "wifi-13-cmd-not-connected.txt"))
	testkit.Eventually(t, "it waits for WiFi", func() bool { return strings.Contains(p.status(), "waits: there is no WiFi") })
	if err := program.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = program.Wait()
	left, _ := filepath.Glob(filepath.Join(p.dir, "store", "*.jsonl"))
	if len(left) == 1 { // as if it had been killed in the middle of a record
		file, err := os.OpenFile(left[0], os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = file.WriteString(`{"kind":"wi`)
		_ = file.Close()
	}
	program = p.start(false, "logger", "--config", p.config)
	testkit.Eventually(t, "it waits for WiFi again", func() bool { return strings.Contains(p.status(), "waits: there is no WiFi") })
	p.run("ip", "link", "set", "wlan0", "up")
	p.says("wifi", golden(t, "wifi-11-cmd.txt"))
	testkit.Eventually(t, "the rest is uploaded", func() bool {
		return p.has("kind", "wifi", "connected", false) && p.has("kind", "wifi", "connected", true, "why", "change")
	})
	if err := program.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := program.Wait(); err != nil {
		t.Error(err)
	}
	out, err := p.phonelog(false, "logger", "upload", "--config", p.config).Output()
	if err != nil || !strings.Contains(string(out), `"waiting":0`) {
		t.Errorf("%s, %v", out, err)
	}
	if !p.has("kind", "stop", "reason", "terminated signal received") {
		t.Error("the end is not there")
	}
	complete(t, p.collected(), 2)
}

func number(t *testing.T, v any) int {
	t.Helper()
	n, err := strconv.Atoi(fmt.Sprint(v))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// complete requires each number of each run exactly once.
func complete(t *testing.T, records []map[string]any, runs int) {
	t.Helper()
	numbers := map[any][]int{}
	for _, r := range records {
		numbers[r["run"]] = append(numbers[r["run"]], number(t, r["n"]))
	}
	if len(numbers) != runs {
		t.Errorf("%d runs", len(numbers))
	}
	for run, all := range numbers {
		slices.Sort(all)
		for i, n := range all {
			if n != i+1 {
				t.Errorf("run %s: record %d is the %d.", run, n, i+1)
				break
			}
		}
	}
}

// TestWalk: location and hashed names, for some time without a reachable
// collector; later it is uploaded manually.
func TestWalk(t *testing.T) {
	p := newPhone(t)
	p.collector()
	key := p.file("key", []byte("0123456789abcdef0123456789abcdef\n"))
	p.configure(fmt.Sprintf(`, "record": ["wifi", "cell", "location"], "hash_ssid_key_file": %q`, key))
	program := p.start(false, "logger", "--config", p.config, "--every", "100ms", "--for", "3s")
	out, err := p.phonelog(false, "logger", "upload", "--config", p.config).Output()
	if err != nil || !strings.Contains(string(out), `"asked":true`) {
		t.Errorf("asked while it runs: %s, %v", out, err)
	}
	p.says("location", strings.ReplaceAll(golden(t, "location-12.txt"), "47.387827,0.673762 hAcc=5.0 et=+2d11h54m48s", "47.388827,0.673762 hAcc=5.0 et=+2d11h55m48s"))
	if err := program.Wait(); err != nil {
		t.Error(err)
	}
	if out, err = p.phonelog(false, "logger", "upload", "--config", p.config).Output(); err != nil {
		t.Errorf("%s, %v", out, err)
	}
	for _, fields := range [][]any{
		{"kind", "start", "hashed", true},
		{"kind", "location", "provider", "fused", "latitude", 47.387827, "why", "first", "fix_mono_s", 215688.258},
		{"kind", "location", "provider", "fused", "latitude", 47.388827, "why", "change"},
		{"kind", "stop", "reason", "--for 3s is over"},
	} {
		if !p.has(fields...) {
			t.Errorf("no record with %v", fields)
		}
	}
	for _, r := range p.collected() {
		switch r["kind"] {
		case "wifi":
			if r["ssid"] != nil || r["bssid"] != nil || r["ssid_hash"] == nil {
				t.Errorf("%v", r)
			}
		case "cell":
			if r["cell_id"] != nil || r["area"] != nil || r["type"] != "LTE" && fmt.Sprint(r["slot"]) == "0" {
				t.Errorf("%v", r)
			}
		case "battery", "interface", "routes":
			t.Errorf("%v was not asked for", r["kind"])
		}
	}
	complete(t, p.collected(), 1)
}

// TestNoPhone: on a machine without Android and WiFi, each missing source is
// reported once, and the others are recorded.
func TestNoPhone(t *testing.T) {
	p := newPhone(t)
	p.configure("")
	for _, name := range []string{"cmd", "dumpsys", "getprop"} {
		if err := os.Remove(filepath.Join(p.commands, name)); err != nil {
			t.Fatal(err)
		}
	}
	p.file("ca.pem", []byte("nonsense"))
	out, err := p.phonelog(false, "logger", "--config", p.config).Output()
	if code := err.(*exec.ExitError).ExitCode(); code != 3 || len(out) > 0 {
		t.Errorf("authorities that are none: code %d, %s", code, out)
	}
	p.config = p.file("logger.json", []byte(fmt.Sprintf(`{"device": "test-phone", "store": %q, "periods": {"wifi_s": 0.1, "cell_s": 0.1, "battery_s": 0.1}}`, filepath.Join(p.dir, "store"))))
	program := p.start(false, "logger", "--config", p.config, "--for", "2s")
	if err := program.Wait(); err != nil {
		t.Error(err)
	}
	files, _ := filepath.Glob(filepath.Join(p.dir, "store", "*.jsonl.gz"))
	if len(files) != 1 {
		t.Fatalf("%v", files)
	}
	text, err := exec.Command("zcat", files[0]).Output()
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]int{}
	for line := range bytes.Lines(text) {
		var r struct{ Kind, Source, Problem string }
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if r.Kind == "problem" {
			said[r.Source]++
		}
	}
	if said["wifi"] != 1 || said["cell"] != 1 || said["battery"] != 1 || said["network"] != 0 || !bytes.Contains(text, []byte(`"interface":"wlan0"`)) {
		t.Errorf("%v\n%s", said, text)
	}
}
