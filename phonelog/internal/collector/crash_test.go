package collector_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mplab/internal/testkit"
	"mplab/phonelog/internal/cli"
)

// argsVariable makes the test binary run as phonelog with these arguments.
const argsVariable = "COLLECTOR_TEST_ARGS"

func TestMain(m *testing.M) {
	if args := os.Getenv(argsVariable); args != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		os.Exit(cli.Execute(ctx, strings.Split(args, "\n")))
	}
	os.Exit(m.Run())
}

// phonelog returns the command of the program with some arguments.
func phonelog(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), argsVariable+"="+strings.Join(args, "\n"))
	cmd.Stderr = os.Stderr
	return cmd
}

// certify writes a certificate for the loopback interface, and its key.
func certify(t *testing.T, dir string) (certificate, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key = filepath.Join(dir, "certificate.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(parsed)
	return certificate, key, pool
}

// start starts a collector and returns its address.
func start(t *testing.T, file string) (*exec.Cmd, string) {
	t.Helper()
	cmd := phonelog(t, "collector", "--config", file)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var ready struct {
		Event  string
		Listen map[string]string
	}
	if err := json.NewDecoder(out).Decode(&ready); err != nil || ready.Event != "ready" {
		t.Fatalf("%+v, %v", ready, err)
	}
	return cmd, ready.Listen["http"]
}

func content(device, batch, lines int) string {
	var b strings.Builder
	for n := range lines {
		fmt.Fprintf(&b, `{"kind":"problem","t":1,"mono_s":1,"run":"%016x","n":%d,"source":"test","problem":"batch %d of %d"}`+"\n", device+1, n+1, batch, device)
	}
	return b.String()
}

// TestKilledUnderLoad kills the collector repeatedly while several phones
// upload over TLS. Like the logger, they resend a batch until it is
// acknowledged. In the end each acknowledged batch is stored exactly once.
func TestKilledUnderLoad(t *testing.T) {
	const phones, kills = 4, 8
	dir := t.TempDir()
	certificate, key, pool := certify(t, dir)
	var tokens strings.Builder
	for p := range phones {
		fmt.Fprintf(&tokens, "phone-%d:token-of-the-phone-%d\n", p, p)
	}
	must(t, os.WriteFile(filepath.Join(dir, "tokens"), []byte(tokens.String()), 0o600))
	storeDir := filepath.Join(dir, "store")
	configure := func(listen string) string {
		file := filepath.Join(dir, "collector.json")
		text := fmt.Sprintf(`{"listen": %q, "tls": {"certificate_file": %q, "key_file": %q}, "tokens_file": %q, "store": %q, "min_free_bytes": 1,
			"limits": {"burst": 1000000}}`, listen, certificate, key, filepath.Join(dir, "tokens"), storeDir)
		must(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	program, address := start(t, configure("127.0.0.1:0"))
	file := configure(address) // the same port from now on

	health := phonelog(t, "collector", "health", "--config", file)
	if out, err := health.Output(); err != nil || strings.TrimSpace(string(out)) != `{"ok":true}` {
		t.Errorf("health: %s, %v", out, err)
	}

	ctx, stop := context.WithCancel(t.Context())
	var uploading sync.WaitGroup
	var count atomic.Int64                            // acknowledged since the start of the collector
	acknowledged := make([]map[string]string, phones) // contents by ID
	repeated := make([]int, phones)
	for p := range phones {
		acknowledged[p] = map[string]string{}
		random := mathrand.New(mathrand.NewPCG(uint64(p), 1))
		client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
		uploading.Go(func() {
			for b := 0; ctx.Err() == nil; b++ {
				id, text := fmt.Sprintf("%08d-x", b), content(p, b, 1+random.IntN(50))
				for ctx.Err() == nil {
					r, err := http.NewRequest(http.MethodPost, fmt.Sprintf("https://%s/v1/batches/phone-%d/%s", address, p, id), strings.NewReader(text))
					if err != nil {
						t.Error(err)
						return
					}
					r.Header.Set("Content-Type", "application/x-ndjson")
					r.Header.Set("Authorization", fmt.Sprintf("Bearer token-of-the-phone-%d", p))
					response, err := client.Do(r)
					if err != nil {
						time.Sleep(time.Millisecond)
						continue
					}
					_, _ = io.Copy(io.Discard, response.Body)
					_ = response.Body.Close()
					if response.StatusCode == http.StatusOK {
						repeated[p]++
					} else if response.StatusCode != http.StatusCreated {
						t.Errorf("phone %d, batch %d: %s", p, b, response.Status)
						return
					}
					acknowledged[p][id] = text
					count.Add(1)
					break
				}
			}
		})
	}
	for range kills {
		testkit.Eventually(t, "a few batches more", func() bool { return count.Load() >= 2*phones })
		time.Sleep(time.Duration(mathrand.IntN(50)) * time.Millisecond)
		count.Store(0)
		must(t, program.Process.Kill())
		_ = program.Wait()
		program, _ = start(t, file)
	}
	testkit.Eventually(t, "a few batches more", func() bool { return count.Load() >= 2*phones })
	stop()
	uploading.Wait()
	must(t, program.Process.Signal(syscall.SIGTERM))
	if err := program.Wait(); err != nil {
		t.Error(err)
	}

	total, again := 0, 0
	for p := range phones {
		stored := read(t, filepath.Join(storeDir, fmt.Sprintf("phone-%d", p)))
		for id, text := range acknowledged[p] {
			switch all := stored[id]; {
			case len(all) != 1:
				t.Errorf("phone %d: %s is there %d times", p, id, len(all))
			case all[0] != text:
				t.Errorf("phone %d: %s has another content", p, id)
			}
		}
		if len(stored) > len(acknowledged[p])+1 { // the last may have been stored without the acknowledgement arriving
			t.Errorf("phone %d: %d stored, %d acknowledged", p, len(stored), len(acknowledged[p]))
		}
		total, again = total+len(acknowledged[p]), again+repeated[p]
	}
	t.Logf("%d kills; %d batches acknowledged, of them %d that were stored before", kills, total, again)
}

// read reads the files of a device strictly: nothing may be torn.
func read(t *testing.T, dir string) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	must(t, err)
	all := map[string][]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		must(t, err)
		for len(data) > 0 {
			line, rest, _ := bytes.Cut(data, []byte("\n"))
			var h struct {
				Kind, ID, SHA256 string
				Bytes            int
			}
			if err := json.Unmarshal(line, &h); err != nil || h.Kind != "batch" || h.Bytes > len(rest) {
				t.Fatalf("%s: %.200q: %v", file, line, err)
			}
			if sum := sha256.Sum256(rest[:h.Bytes]); hex.EncodeToString(sum[:]) != h.SHA256 {
				t.Errorf("%s: %s is damaged", file, h.ID)
			}
			all[h.ID] = append(all[h.ID], string(rest[:h.Bytes]))
			data = rest[h.Bytes:]
		}
	}
	return all
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestStrangers checks that neither a slow request of a stranger nor a connection
// without a complete request blocks a phone.
func TestStrangers(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "tokens"), []byte("phone:token-of-the-phone\n"), 0o600))
	file := filepath.Join(dir, "collector.json")
	must(t, os.WriteFile(file, []byte(fmt.Sprintf(`{"listen": "127.0.0.1:0", "tokens_file": %q, "store": %q, "min_free_bytes": 1, "control": %q}`,
		filepath.Join(dir, "tokens"), filepath.Join(dir, "store"), filepath.Join(dir, "control"))), 0o600))
	program, address := start(t, file)
	for range 50 {
		conn, err := net.Dial("tcp", address)
		must(t, err)
		defer conn.Close()
		_, err = conn.Write([]byte("POST /v1/batches/phone/1 HTTP/1.1\r\nHost: x\r\n"))
		must(t, err)
	}
	r, err := http.NewRequest(http.MethodPost, "http://"+address+"/v1/batches/phone/1", strings.NewReader(content(0, 0, 3)))
	must(t, err)
	r.Header.Set("Content-Type", "application/x-ndjson")
	r.Header.Set("Authorization", "Bearer token-of-the-phone")
	response, err := http.DefaultClient.Do(r)
	must(t, err)
	_ = response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		t.Error(response.Status)
	}
	out, err := phonelog(t, "collector", "status", "--control", filepath.Join(dir, "control")).Output()
	if err != nil || !strings.Contains(string(out), `"stored":1,`) || !strings.Contains(string(out), `"lines":3,`) {
		t.Errorf("%s, %v", out, err)
	}
	must(t, program.Process.Signal(syscall.SIGTERM))
	if err := program.Wait(); err != nil {
		t.Error(err)
	}
}
