package config

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"mplab/control"
	"mplab/internal/secretfile"
	"mplab/internal/strictjson"
)

// Collector is the configuration of the collector.
type Collector struct {
	Listen       strictjson.Address `json:"listen"` // anywhere else than on the loopback interface it needs tls
	TLS          *CollectorTLS      `json:"tls"`
	TokensFile   string             `json:"tokens_file"` // a line DEVICE:TOKEN for each
	Store        string             `json:"store"`       // the directory of what devices upload
	Limits       CollectorLimits    `json:"limits"`
	MinFreeBytes int64              `json:"min_free_bytes"` // that stay free on the disk
	Log          string             `json:"log"`            // "": no log
	Control      string             `json:"control"`

	Tokens Tokens `json:"-"`
}

// CollectorTLS is the collector's certificate.
type CollectorTLS struct {
	CertificateFile string `json:"certificate_file"` // with what leads to the authority
	KeyFile         string `json:"key_file"`
}

// CollectorLimits bound what devices may do. Values of 0 stand for the defaults.
type CollectorLimits struct {
	BatchBytes       int64   `json:"batch_bytes"` // as sent
	ContentBytes     int64   `json:"content_bytes"`
	LineBytes        int     `json:"line_bytes"`
	BatchesPerMinute float64 `json:"batches_per_minute"` // of a device, in the long run; a request for /myip counts as one
	Burst            int     `json:"burst"`              // of a device, at once
	Concurrent       int     `json:"concurrent"`         // batches that are being taken
}

// Tokens are the devices that may upload, by the hash of their token: finding
// one takes as long as not finding it.
type Tokens map[[sha256.Size]byte]string

// LoadCollector reads and checks the configuration of a collector, its secrets
// included.
func LoadCollector(path string) (Collector, error) {
	var c Collector
	if err := strictjson.Load(path, &c); err != nil {
		return Collector{}, err
	}
	err := c.check()
	if err == nil {
		c.Tokens, err = c.ReadTokens()
	}
	if err == nil && c.TLS != nil {
		_, err = c.TLS.Read()
	}
	if err != nil {
		return Collector{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Read reads certificate and key.
func (t CollectorTLS) Read() (tls.Certificate, error) {
	key, err := secretfile.ReadBytes(t.KeyFile, 1<<20)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("tls.key_file: %w", err)
	}
	chain, err := os.ReadFile(t.CertificateFile)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("tls.certificate_file: %w", err)
	}
	certificate, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("tls: %s and %s: %w", t.CertificateFile, t.KeyFile, err)
	}
	return certificate, nil
}

// mostTokens bounds the file of tokens.
const mostTokens = 16 << 20 // bytes

// ReadTokens reads who may upload from a file that nobody else can use. No
// error shows a token.
func (c Collector) ReadTokens() (Tokens, error) {
	data, err := secretfile.ReadBytes(c.TokensFile, mostTokens)
	if err != nil {
		return nil, fmt.Errorf("tokens_file: %w", err)
	}
	if len(data) > mostTokens {
		return nil, fmt.Errorf("tokens_file: %s has more than %d bytes", c.TokensFile, mostTokens)
	}
	tokens, lines := make(Tokens), make(map[string]int)
	for i, line := range bytes.Split(data, []byte("\n")) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		name, token, found := bytes.Cut(line, []byte(":"))
		device, problem := string(name), ""
		hash := sha256.Sum256(token)
		switch {
		case !found:
			problem = "no colon was found; a line is DEVICE:TOKEN"
		case !DeviceForm.MatchString(device):
			problem = fmt.Sprintf("%.64q is no name; %s", device, deviceRule)
		case !tokenForm.Match(token):
			problem = "what follows the colon is no token; " + tokenRule
		case lines[device] != 0:
			problem = fmt.Sprintf("the device of line %d is there again; each is allowed once", lines[device])
		case tokens[hash] != "":
			problem = fmt.Sprintf("the token is that of line %d; each device needs its own", lines[tokens[hash]])
		}
		if problem != "" {
			return nil, fmt.Errorf("tokens_file: %s: line %d: %s", c.TokensFile, i+1, problem)
		}
		tokens[hash], lines[device] = device, i+1
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("tokens_file: %s has no device; a line is DEVICE:TOKEN", c.TokensFile)
	}
	return tokens, nil
}

func (c *Collector) check() error {
	switch {
	case !c.Listen.IsValid():
		return errors.New("listen: missing; give the address and port to listen on, such as 127.0.0.1:8443")
	case c.TLS == nil && !c.Listen.Addr().IsLoopback():
		return fmt.Errorf("listen: %s is not on the loopback interface; that needs tls", c.Listen)
	case c.TLS != nil && (c.TLS.CertificateFile == "" || c.TLS.KeyFile == ""):
		return errors.New("tls: give certificate_file and key_file")
	case c.TokensFile == "":
		return errors.New("tokens_file: missing; give the file with a line DEVICE:TOKEN for each device")
	case c.Store == "":
		return errors.New("store: missing; give the directory for what devices upload")
	}
	if c.Control != "" {
		if err := control.CheckPath(c.Control); err != nil {
			return fmt.Errorf("control: %w", err)
		}
	}
	l := &c.Limits
	l.BatchBytes, l.ContentBytes = cmp.Or(l.BatchBytes, 2<<20), cmp.Or(l.ContentBytes, 8<<20)
	l.LineBytes, l.Burst, l.Concurrent = cmp.Or(l.LineBytes, 64<<10), cmp.Or(l.Burst, 120), cmp.Or(l.Concurrent, 32)
	c.MinFreeBytes = cmp.Or(c.MinFreeBytes, 256<<20)
	for _, n := range []struct {
		key                string
		value, least, most int64
	}{
		{"limits.batch_bytes", l.BatchBytes, 1, 256 << 20},
		{"limits.content_bytes", l.ContentBytes, 1, 256 << 20},
		{"limits.line_bytes", int64(l.LineBytes), 1024, 1 << 20},
		{"limits.burst", int64(l.Burst), 1, 1e6},
		{"limits.concurrent", int64(l.Concurrent), 1, 4096},
		{"min_free_bytes", c.MinFreeBytes, 1, 1 << 50},
	} {
		if n.value < n.least || n.value > n.most {
			return fmt.Errorf("%s: %d is not within %d and %d", n.key, n.value, n.least, n.most)
		}
	}
	return numbers([]number{{"limits.batches_per_minute", &l.BatchesPerMinute, 120, 0.01, 1e6}})
}

// loopback tells whether a host is this machine, by its address or as localhost.
func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}
