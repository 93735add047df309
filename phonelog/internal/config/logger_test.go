package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mplab/internal/strictjson"
)

const token = "0123456789-token"

func TestGoodLogger(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"token": token + "\n", "key": "a key of 16 bytes\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := LoadLogger(write(t, "logger.json", `{"device": "pixel-7", "store": "log"}`, 0o644))
	if err != nil || !c.Records(RecordCellID) || c.Records(RecordLocation) || c.Upload != nil || c.Periods.WiFiS != 5 || c.HeartbeatS != 600 || c.Files.TotalBytes != 100<<20 || c.HashKey != nil {
		t.Errorf("%+v, %v", c, err)
	}
	c, err = LoadLogger(write(t, "logger.json", `{"device": "pixel-7", "store": "log", "record": ["wifi", "location"], "hash_ssid_key_file": "`+dir+`/key",
		"upload": {"url": "https://collector.example:8443/", "token_file": "`+dir+`/token"}, "myip": {}}`, 0o644))
	if err != nil || !c.Records(RecordLocation) || c.Records(RecordCell) || string(c.HashKey) != "a key of 16 bytes" || c.Upload.Token != token ||
		c.Upload.URL != "https://collector.example:8443" || !c.Upload.Needs(WhenWiFi) || !c.Upload.Needs(WhenCharging) || !slices.Equal(c.Upload.WiFiInterfaces, []string{"wlan*"}) || c.MyIP.EveryS != 300 {
		t.Errorf("%+v, %v", c, err)
	}
	c, err = LoadLogger(write(t, "logger.json", `{"device": "d", "store": "log", "upload": {"url": "http://127.0.0.1:8443", "token_file": "`+dir+`/token", "when": []}}`, 0o644))
	if err != nil || c.Upload.Needs(WhenWiFi) || c.Upload.Needs(WhenCharging) {
		t.Errorf("%+v, %v", c, err)
	}
	c, err = LoadLogger(write(t, "logger.json", `{"device": "d", "store": "log", "record": [], "upload": {"url": "http://127.0.0.1:8443", "token_file": "`+dir+`/token", "wifi_interfaces": []}}`, 0o644))
	if err != nil || len(c.Record) != 0 || len(c.Upload.WiFiInterfaces) != 0 {
		t.Errorf("empty lists are no defaults: %+v, %v", c, err)
	}
}

func TestBadLoggers(t *testing.T) {
	const rest = `"device": "pixel-7", "store": "log"`
	const upload = rest + `, "upload": {"url": "https://c.example:8443", "token_file": "x"`
	for text, want := range map[string]string{
		`{"store": "log"}`:                                                  `device: "" is no name; a name has up to 64 of a-z, 0-9, '.', '_' and '-', and begins with a letter or a digit`,
		`{"device": "Pixel 7", "store": "log"}`:                             `device: "Pixel 7" is no name; a name has up to 64 of a-z, 0-9, '.', '_' and '-', and begins with a letter or a digit`,
		`{"device": "../etc", "store": "log"}`:                              `device: "../etc" is no name; a name has up to 64 of a-z, 0-9, '.', '_' and '-', and begins with a letter or a digit`,
		`{"device": "pixel-7"}`:                                             `store: missing; give the directory for the logger's files`,
		`{` + rest + `, "record": ["gps"]}`:                                 `record: "gps" is not known; known are network, wifi, cell, cell-id, battery, location`,
		`{` + rest + `, "record": ["wifi", "wifi"]}`:                        `record: "wifi" is there twice`,
		`{` + rest + `, "record": ["cell-id"]}`:                             `record: "cell-id" is a part of "cell"; give both`,
		`{` + rest + `, "record": "wifi"}`:                                  `record: must be a list […], found "wifi"`,
		`{` + rest + `, "periods": {"wifi": 5}}`:                            `periods.wifi: unknown key; allowed: battery_s, cell_s, location_s, network_s, wifi_s`,
		`{` + rest + `, "periods": {"wifi_s": 0.01}}`:                       `periods.wifi_s: 0.01 is not within 0.1 and 86400`,
		`{` + rest + `, "steps": {"signal_db": -1}}`:                        `steps.signal_db: -1 is not within 0 and 100`,
		`{` + rest + `, "interfaces": ["wlan["]}`:                           `interfaces: "wlan[" is no pattern of interface names`,
		`{` + rest + `, "files": {"bytes": 1}}`:                             `files.bytes: 1 is not within 4096 and 4194304`,
		`{` + rest + `, "files": {"total_bytes": 5000}}`:                    `files.total_bytes: 5000 is less than four files of 1048576`,
		`{` + rest + `, "hash_ssid_key_file": "/does/not/exist"}`:           `hash_ssid_key_file: open /does/not/exist: no such file or directory`,
		`{` + rest + `, "myip": {}}`:                                        `myip: the collector answers it; give upload, too`,
		`{` + rest + `, "upload": {}}`:                                      `upload.url: "" is not https://HOST:PORT`,
		`{` + rest + `, "upload": {"url": "http://c.example:80"}}`:          `upload.url: "http://c.example:80" is not https; plain http is for a collector on the loopback interface only`,
		`{` + rest + `, "upload": {"url": "https://a:b@c.example"}}`:        `upload.url: "https://a:b@c.example" is not https://HOST:PORT`,
		`{` + rest + `, "upload": {"url": "https://c.example/v1"}}`:         `upload.url: "https://c.example/v1" is not https://HOST:PORT`,
		`{` + rest + `, "upload": {"url": "https://c.example:8443"}}`:       `upload.token_file: missing; give the file with the device's token`,
		`{` + rest + `, "upload": {"token": "x"}}`:                          `upload.token: unknown key; allowed: backoff_most_s, backoff_s, battery_percent, ca_file, connect, every_s, timeout_s, token_file, url, when, wifi_interfaces`,
		`{` + upload + `, "when": ["night"]}}`:                              `upload.when: "night" is not known; known are wifi, charging`,
		`{` + upload + `, "connect": "c.example:1"}}`:                       `upload.connect: "c.example:1" is not ADDRESS:PORT with a numeric address`,
		`{` + upload + `, "battery_percent": 101}}`:                         `upload.battery_percent: 101 is not within 0 and 100`,
		`{` + upload + `, "backoff_s": 10, "backoff_most_s": 5}}`:           `upload.backoff_most_s: 5 is less than backoff_s`,
		`{` + strings.Replace(upload, `"x"`, `"/does/not/exist"`, 1) + `}}`: `upload.token_file: open /does/not/exist: no such file or directory`,
		`{` + rest + `, "control": "/` + strings.Repeat("x", 107) + `"}`:    `control: the path has 108 bytes, a Unix socket allows 107`,
		`{` + rest + `, "location": true}`:                                  `location: unknown key; allowed: control, device, files, hash_ssid_key_file, heartbeat_s, interfaces, myip, periods, record, steps, store, upload`,
	} {
		file := write(t, "logger.json", text, 0o644)
		if _, err := LoadLogger(file); err == nil || err.Error() != file+": "+want {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}

func TestBadCollectors(t *testing.T) {
	open := write(t, "open", "a:"+token+"\n", 0o644)
	const rest = `"listen": "127.0.0.1:0", "tokens_file": "x", "store": "y"`
	for text, want := range map[string]string{
		`{}`:                                                                        `listen: missing; give the address and port to listen on, such as 127.0.0.1:8443`,
		`{"listen": "0.0.0.0:8443"}`:                                                `listen: 0.0.0.0:8443 is not on the loopback interface; that needs tls`,
		`{"listen": "[::]:8443"}`:                                                   `listen: [::]:8443 is not on the loopback interface; that needs tls`,
		`{"listen": "192.0.2.1:8443"}`:                                              `listen: 192.0.2.1:8443 is not on the loopback interface; that needs tls`,
		`{"listen": "192.0.2.1:1", "tls": {}}`:                                      `tls: give certificate_file and key_file`,
		`{"listen": "192.0.2.1:1", "tls": {"key": "x"}}`:                            `tls.key: unknown key; allowed: certificate_file, key_file`,
		`{"listen": "127.0.0.1:0"}`:                                                 `tokens_file: missing; give the file with a line DEVICE:TOKEN for each device`,
		`{"listen": "127.0.0.1:0", "tokens_file": "x"}`:                             `store: missing; give the directory for what devices upload`,
		`{` + rest + `, "limits": {"line_bytes": 1}}`:                               `limits.line_bytes: 1 is not within 1024 and 1048576`,
		`{` + rest + `, "limits": {"batches_per_minute": -1}}`:                      `limits.batches_per_minute: -1 is not within 0.01 and 1000000`,
		`{` + rest + `, "min_free_bytes": -1}`:                                      `min_free_bytes: -1 is not within 1 and 1125899906842624`,
		`{"listen": "127.0.0.1:0", "tokens_file": "` + open + `", "store": "y"}`:    `tokens_file: ` + open + ` may be used by others (mode 0644); run: chmod 600 ` + open,
		`{"listen": "127.0.0.1:0", "tokens_file": "x", "store": "y", "control": 7}`: `control: must be a string, found 7`,
		`{"listen": "127.0.0.1:0", "tokens_file": "/does/not/exist", "store": "y"}`: `tokens_file: open /does/not/exist: no such file or directory`,
	} {
		file := write(t, "collector.json", text, 0o644)
		if _, err := LoadCollector(file); err == nil || err.Error() != file+": "+want {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// TestBadTokens checks that no message contains a token.
func TestBadTokens(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "has no device; a line is DEVICE:TOKEN",
		"# nobody\n\n":                        "has no device; a line is DEVICE:TOKEN",
		"a" + token + "\n":                    "line 1: no colon was found; a line is DEVICE:TOKEN",
		"# x\nA:" + token + "\n":              `line 2: "A" is no name; ` + deviceRule,
		"a:short\n":                           "line 1: what follows the colon is no token; " + tokenRule,
		"a:" + token + " x\n":                 "line 1: what follows the colon is no token; " + tokenRule,
		"a:" + token + "\na:" + token + "1\n": "line 2: same device as in line 1; each is allowed once",
		"a:" + token + "\nb:" + token + "\n":  "line 2: the token is that of line 1; each device needs its own",
	} {
		file := write(t, "tokens", text, 0o600)
		_, err := (Collector{TokensFile: file}).ReadTokens()
		if err == nil || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), token) {
			t.Errorf("%q\ngot  %v\nwant %s", text, err, want)
		}
	}
	tokens, err := (Collector{TokensFile: write(t, "tokens", "a:"+token+"\r\n  b:"+token+"==\n", 0o600)}).ReadTokens()
	if err != nil || len(tokens) != 2 {
		t.Errorf("%v, %v", tokens, err)
	}
}

// FuzzLogger and FuzzCollector: any file is accepted or yields a one-line
// error.
func FuzzLogger(f *testing.F) {
	f.Add([]byte(`{"device": "d", "store": "s", "record": ["wifi"], "upload": {"url": "https://c:1", "when": null, "token_file": "x"}, "myip": {"every_s": 1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var c Logger
		if !taken(t, data, &c) {
			return
		}
		if c.Device == "" || c.Periods.WiFiS < 0.1 || c.Files.Bytes < 4096 || c.Upload != nil && (c.Upload.When == nil || c.Upload.EveryS <= 0) {
			t.Errorf("%+v", c)
		}
	})
}

// FuzzCollector is the same for a collector.
func FuzzCollector(f *testing.F) {
	f.Add([]byte(`{"listen": "127.0.0.1:0", "tls": null, "tokens_file": "x", "store": "y", "limits": {"burst": 1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var c Collector
		if !taken(t, data, &c) {
			return
		}
		if c.TLS == nil && !c.Listen.Addr().IsLoopback() || c.Limits.Burst < 1 || c.Limits.BatchBytes < 1 {
			t.Errorf("%+v", c)
		}
	})
}

// taken reports whether data is accepted as a configuration, and checks that
// the error is a single line.
func taken(t *testing.T, data []byte, c interface{ check() error }) bool {
	t.Helper()
	err := strictjson.Decode(data, c)
	if err == nil {
		err = c.check()
	}
	if err == nil {
		return true
	}
	if text := err.Error(); text == "" || strings.ContainsRune(text, '\n') {
		t.Errorf("%q", text)
	}
	return false
}

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
