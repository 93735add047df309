package identity

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// openssl runs openssl, an independent implementation of the primitives in
// mpflex/spec.md.
func openssl(t *testing.T, args ...string) string {
	t.Helper()
	output, err := exec.Command("openssl", args...).Output()
	if err != nil {
		t.Fatalf("openssl %s: %v", strings.Join(args, " "), err)
	}
	return string(output)
}

func needOpenSSL(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not installed")
	}
	if err := exec.Command("openssl", "kdf", "-help").Run(); err != nil {
		t.Skip("this openssl is older than 3.0")
	}
}

// opensslKey derives a key from secretA and makes a certificate that differs from ours
// around it. It returns the files of both.
func opensslKey(t *testing.T, info string) (key, certificate string) {
	t.Helper()
	seed := openssl(t, "kdf", "-keylen", "32", "-kdfopt", "digest:SHA256", "-kdfopt", "key:"+string(secretA),
		"-kdfopt", "salt:"+salt, "-kdfopt", "info:"+info, "HKDF")
	raw, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(seed), ":", ""))
	if err != nil {
		t.Fatal(err)
	}
	// An Ed25519 private key in PKCS #8 (RFC 8410 §7) is a prefix and the seed.
	prefix, _ := hex.DecodeString("302e020100300506032b657004220420")
	key = filepath.Join(t.TempDir(), "key.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: append(prefix, raw...)})
	if err := os.WriteFile(key, block, 0o600); err != nil {
		t.Fatal(err)
	}
	certificate = filepath.Join(t.TempDir(), "certificate.pem")
	openssl(t, "req", "-x509", "-new", "-key", key, "-subj", "/CN=something else", "-days", "1", "-out", certificate)
	return key, certificate
}

var keyingMaterial = regexp.MustCompile(`Keying material: ([0-9A-F]{64})`)

func TestOpenSSLAsAgent(t *testing.T) {
	needOpenSSL(t)
	key, certificate := opensslKey(t, agentInfo)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	proxy := newProxy(t, Options{Timeout: time.Minute}, bob, alice)
	done := make(chan outcome, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			done <- outcome{nil, err}
			return
		}
		got := <-serve(proxy, conn)
		if got.err == nil {
			_ = got.conn.Close()
		}
		done <- got
	}()
	output := openssl(t, "s_client", "-connect", listener.Addr().String(), "-tls1_3", "-groups", "X25519", "-alpn", Protocol,
		"-servername", sealName(keysOf(t, secretA).naming, time.Now()), "-cert", certificate, "-key", key,
		"-keymatexport", bindingLabel, "-keymatexportlen", "32")
	got := <-done
	if got.err != nil || got.conn.Client.Name != "alice" {
		t.Fatalf("%+v", got)
	}
	found := keyingMaterial.FindStringSubmatch(output)
	if found == nil || found[1] != fmt.Sprintf("%X", got.conn.Binding) {
		t.Errorf("the binding is %X; openssl: %s", got.conn.Binding, output)
	}
}

func TestOpenSSLAsProxy(t *testing.T) {
	needOpenSSL(t)
	key, certificate := opensslKey(t, proxyInfo)
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, "openssl", "s_server", "-accept", "127.0.0.1:0", "-naccept", "1", "-tls1_3", "-alpn", Protocol,
		"-cert", certificate, "-key", key, "-Verify", "1", "-keymatexport", bindingLabel, "-keymatexportlen", "32")
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	lines := bufio.NewReader(stdout)
	address := ""
	for address == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("openssl does not listen: %v", err)
		}
		if found := regexp.MustCompile(`^ACCEPT (127\.0\.0\.1:[1-9]\d*)\s`).FindStringSubmatch(line); found != nil {
			address = found[1]
		}
	}
	client, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := newAgent(t, secretA).Handshake(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	output, _ := io.ReadAll(lines)
	found := keyingMaterial.FindStringSubmatch(string(output))
	if found == nil || found[1] != fmt.Sprintf("%X", conn.Binding) {
		t.Errorf("the binding is %X; openssl: %s", conn.Binding, output)
	}
}
