package config

import (
	"strings"
	"testing"

	"mplab/internal/strictjson"
)

// FuzzAgent: any file is accepted, or refused with an error of one line. The values of
// an accepted one are within their bounds.
func FuzzAgent(f *testing.F) {
	f.Add([]byte(`{"listen": {"redirect": "127.0.0.1:3128"}, "proxy": "10.64.3.2:7003", "transport": "mpflex", "paths": [{"device": "wlan0"}], "session": {"reinjection": {"tail": false}}}`))
	f.Add([]byte(`{"listen": {"socks": "127.0.0.1:1"}, "proxy": "[fd00::1]:2", "transport": "tcp", "mark": 1e3}`))
	f.Add([]byte(`{"paths": [[{"device": 1}], null]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var c Agent
		if !taken(t, data, &c) {
			return
		}
		s := c.Session.Config()
		if !c.Proxy.IsValid() || c.MaxConnections <= 0 || c.IdleTimeout() <= 0 || s.Window < 0 || s.Memory < 0 || s.Keepalive < 0 || c.Session.Budget(DefaultAgentBudget) <= 0 || len(c.Paths) > maxPaths {
			t.Errorf("%+v", c)
		}
	})
}

// FuzzProxy is the same for a proxy.
func FuzzProxy(f *testing.F) {
	f.Add([]byte(`{"listen": {"tcp": "10.64.3.2:7001", "mpflex": "10.64.3.2:7003"}, "allow": ["10.65.0.0/16:53,80,443", "[fd00::/8]:*"]}`))
	f.Add([]byte(`{"listen": {"tcp": ":0"}, "allow": ["0.0.0.0/33:99999"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var c Proxy
		if !taken(t, data, &c) {
			return
		}
		if c.MaxConnections <= 0 || c.IdleTimeout() <= 0 || len(c.Allowed) == 0 || c.Session.Budget(DefaultProxyBudget) <= 0 {
			t.Errorf("%+v", c)
		}
	})
}

// taken reports whether data is accepted as a configuration. If not, the error must
// have one line.
func taken(t *testing.T, data []byte, c interface{ check() error }) bool {
	t.Helper()
	err := strictjson.Decode(data, c)
	if err == nil {
		err = c.check()
	}
	if err != nil {
		oneLine(t, err)
	}
	return err == nil
}

func oneLine(t *testing.T, err error) {
	t.Helper()
	if text := err.Error(); text == "" || strings.ContainsRune(text, '\n') {
		t.Errorf("%q", text)
	}
}
