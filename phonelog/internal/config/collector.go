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
	Listen       strictjson.Address `json:"listen"` // any address other than loopback requires tls
	TLS          *CollectorTLS      `json:"tls"`
	TokensFile   string             `json:"tokens_file"` // lines DEVICE:TOKEN
	Store        string             `json:"store"`       // directory of the uploads
	Limits       CollectorLimits    `json:"limits"`
	MinFreeBytes int64              `json:"min_free_bytes"` // minimum free space on the disk
	Log          string             `json:"log"`            // "": no log
	Control      string             `json:"control"`

	Tokens Tokens `json:"-"`
}

// CollectorTLS is the collector's certificate.
type CollectorTLS struct {
	CertificateFile string `json:"certificate_file"` // with its chain to the authority
	KeyFile         string `json:"key_file"`
}

// CollectorLimits bound the requests of devices. 0 selects the default.
type CollectorLimits struct {
	BatchBytes       int64   `json:"batch_bytes"` // compressed size
	ContentBytes     int64   `json:"content_bytes"`
	LineBytes        int     `json:"line_bytes"`
	BatchesPerMinute float64 `json:"batches_per_minute"` // average per device; a request for /myip counts as one
	Burst            int     `json:"burst"`              // per device, at once
	Concurrent       int     `json:"concurrent"`         // maximum number of concurrent batches
}

// Tokens maps the hash of each token to the device that may upload with it.
// Lookups of known and unknown tokens take equal time.
type Tokens map[[sha256.Size]byte]string

// LoadCollector reads and checks the configuration of a collector, including
// its secrets.
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

// mostTokens is the maximum size of the tokens file.
const mostTokens = 16 << 20 // in bytes

// ReadTokens reads the tokens of all devices from a file that only its owner
// can access. No error contains a token.
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
			problem = fmt.Sprintf("same device as in line %d; each is allowed once", lines[device])
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

// loopback reports whether a host is this machine, by address or as localhost.
func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}
