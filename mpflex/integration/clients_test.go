package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mplab/mpflex/connlog"
	"mplab/mpflex/internal/measure/check"
)

// TestClientsDir: a proxy serves several phones, each with its own secret, over all
// transports, until its file is removed.
func TestClientsDir(t *testing.T) {
	needLab(t)
	directory := filepath.Join(t.TempDir(), "clients")
	if err := os.Mkdir(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	secrets := map[string]string{}
	for _, name := range []string{"phone-1", "phone-2"} {
		secrets[name] = filepath.Join(directory, name)
		if err := os.WriteFile(secrets[name], []byte(strings.Repeat(name, 5)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := values{"secret_file": "", "clients_dir": directory, "per_client": values{"streams": 100}}
	proxy := startProxy(t, config)
	tries := func(name, secret string) (ok int) {
		for _, transport := range transports() {
			c := agentConfig(t, transport)
			c["secret_file"] = secret
			stdout, stderr, _ := once(t, "phone", "check", "--config", writeConfig(t, c), "--timeout", "2s")
			var result check.Result
			if err := json.Unmarshal([]byte(stdout), &result); err != nil {
				t.Fatalf("%s: %v: %s", name, err, stderr)
			}
			if result.OK {
				ok++
			}
		}
		return ok
	}
	for name, secret := range secrets {
		if ok := tries(name, secret); ok != len(transports()) {
			t.Errorf("%s: %d transports", name, ok)
		}
	}
	count := map[string]int{}
	eventually(t, "the records", func() bool {
		clear(count)
		for _, r := range records[connlog.Connection](t, proxy.log, "connection") {
			count[r.Client]++
		}
		return count["phone-1"] == 3 && count["phone-2"] == 3
	})
	if len(count) != 2 {
		t.Errorf("%v", count)
	}
	kept := secretFile(t, strings.Repeat("phone-2", 5))
	if err := os.Remove(secrets["phone-2"]); err != nil {
		t.Fatal(err)
	}
	if err := proxy.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the record of the removal", func() bool {
		all := records[connlog.Clients](t, proxy.log, "clients")
		return len(all) == 2 && len(all[1].Removed) == 1 && all[1].Removed[0] == "phone-2"
	})
	if ok := tries("phone-2", kept); ok != 0 {
		t.Errorf("phone-2 is served by %d transports", ok)
	}
	if ok := tries("phone-1", secrets["phone-1"]); ok != len(transports()) {
		t.Errorf("phone-1: %d transports", ok)
	}
}
