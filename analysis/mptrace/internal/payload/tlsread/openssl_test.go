package tlsread_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mplab/analysis/mptrace/internal/payload/stream"
	"mplab/analysis/mptrace/internal/payload/tlskeys"
	"mplab/analysis/mptrace/internal/payload/tlsread"
)

// relay forwards a connection and records its data.
func relay(t *testing.T, to string) (address string, recorded func() [2][]byte) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	var seen [2]bytes.Buffer
	done := make(chan struct{}, 2)
	go func() {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", to)
		if err != nil {
			_ = client.Close()
			return
		}
		pass := func(dst, src net.Conn, keep io.Writer) {
			_, _ = io.Copy(io.MultiWriter(keep, dst), src)
			_ = dst.(*net.TCPConn).CloseWrite()
			done <- struct{}{}
		}
		go pass(server, client, &seen[0])
		go pass(client, server, &seen[1])
	}()
	return listener.Addr().String(), func() [2][]byte {
		for range 2 {
			select {
			case <-done:
			case <-time.After(10 * time.Second):
				t.Fatal("the connection does not end")
			}
		}
		return [2][]byte{seen[0].Bytes(), seen[1].Bytes()}
	}
}

// decryptWith decrypts with the keys in a file.
func decryptWith(t testing.TB, keyFile string, seen [2][]byte) (plain [2][]byte, err error) {
	t.Helper()
	keys, err := tlskeys.Open(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	return decrypt(t, keys, seen)
}

// decrypt returns the application data of both directions.
func decrypt(t testing.TB, keys *tlskeys.Log, seen [2][]byte) (plain [2][]byte, err error) {
	t.Helper()
	var scratch []byte
	s := tlsread.New(keys, &scratch)
	pool := stream.NewPool(1 << 24)
	var in [2]stream.Buffer
	for dir := range in {
		in[dir] = stream.NewBuffer(pool)
		in[dir].Append(seen[dir], 1, 0)
	}
	for range 4 {
		for dir := range in {
			err := s.Advance(dir, &in[dir], func(b []byte, runs []stream.Run) {
				plain[dir] = append(plain[dir], b...)
				var sum uint64
				for _, r := range runs {
					sum += r.Bytes
				}
				if sum != uint64(len(b)) {
					t.Errorf("runs of %d bytes for %d", sum, len(b))
				}
			})
			if err != nil {
				return plain, err
			}
		}
	}
	return plain, nil
}

// program is a running s_client or s_server.
type program struct {
	in  io.WriteCloser
	out io.Reader // standard output and error
	end func()    // closes its input and waits for its end
}

// start runs openssl with a time limit, so that no test hangs.
func start(t *testing.T, arguments ...string) program {
	t.Helper()
	c := exec.Command(openssl(t), arguments...) // #nosec G204
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout, c.Stderr = w, w
	in, _ := c.StdinPipe()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	timer := time.AfterFunc(15*time.Second, func() { _ = c.Process.Kill() })
	stop := sync.OnceFunc(func() {
		timer.Stop()
		_ = c.Process.Kill()
		_ = c.Wait()
		_ = r.Close()
	})
	t.Cleanup(stop)
	return program{in, r, func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, r)
		stop()
	}}
}

func openssl(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("openssl is not installed")
	}
	return path
}

func certificate(t testing.TB, dir string) (tls.Certificate, string) {
	t.Helper()
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, _ := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	private, _ := x509.MarshalPKCS8PrivateKey(key)
	file := filepath.Join(dir, "server.pem")
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

// TestWhatOpenSSLSends: TLS 1.3 cipher suites, key updates, and a
// HelloRetryRequest, with a crypto/tls echo server.
func TestWhatOpenSSLSends(t *testing.T) {
	openssl(t)
	dir := t.TempDir()
	pair, _ := certificate(t, dir)
	for name, c := range map[string]struct {
		arguments []string
		update    bool
		curves    []tls.CurveID
	}{
		"AES-128-GCM":       {arguments: []string{"-tls1_3", "-ciphersuites", "TLS_AES_128_GCM_SHA256"}},
		"AES-256-GCM":       {arguments: []string{"-tls1_3", "-ciphersuites", "TLS_AES_256_GCM_SHA384"}},
		"CHACHA20-POLY1305": {arguments: []string{"-tls1_3", "-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"}},
		"key updates":       {arguments: []string{"-tls1_3"}, update: true},
		"HelloRetryRequest": {arguments: []string{"-tls1_3", "-groups", "X25519:P-384"}, curves: []tls.CurveID{tls.CurveP384}},
		"TLS 1.2, GCM":      {arguments: []string{"-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-GCM-SHA384"}},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, CurvePreferences: c.curves, MinVersion: tls.VersionTLS12})
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			go func() {
				server, err := listener.Accept()
				if err == nil {
					_, _ = io.Copy(server, server)
					_ = server.Close()
				}
			}()
			address, recorded := relay(t, listener.Addr().String())
			keyFile := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			if !c.update {
				c.arguments = append(c.arguments, "-nocommands")
			}
			client := start(t, append([]string{"s_client", "-connect", address, "-keylogfile", keyFile}, c.arguments...)...)
			var want strings.Builder
			say := func(line string) {
				_, _ = io.WriteString(client.in, line+"\n")
				want.WriteString(line + "\n")
				waitFor(t, client.out, line)
			}
			say("first words")
			if c.update {
				for range 3 {
					_, _ = io.WriteString(client.in, "K\n") // update both sides' keys
					waitFor(t, client.out, "KEYUPDATE")
					say("after an update")
				}
			}
			say(strings.Repeat("x", 5000))
			client.end()
			plain, err := decryptWith(t, keyFile, recorded())
			if err != nil || string(plain[0]) != want.String() || string(plain[1]) != want.String() {
				t.Errorf("%v: %d bytes up, %d down, want %d", err, len(plain[0]), len(plain[1]), want.Len())
			}
		})
	}
}

// waitFor reads until the text appears.
func waitFor(t *testing.T, r io.Reader, text string) {
	t.Helper()
	var seen []byte
	b := make([]byte, 4096)
	for !bytes.Contains(seen, []byte(text)) {
		n, err := r.Read(b)
		seen = append(seen, b[:n]...)
		if err != nil {
			t.Fatalf("%v after %q", err, seen)
		}
	}
}

// TestEncryptThenMAC: an extension that crypto/tls does not support (RFC 7366).
func TestEncryptThenMAC(t *testing.T) {
	openssl(t)
	dir := t.TempDir()
	_, file := certificate(t, dir)
	for _, cipher := range []string{"ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA", "ECDHE-ECDSA-AES128-SHA256", "ECDHE-ECDSA-AES256-SHA384"} {
		port := serve(t, "-cert", file, "-rev", "-quiet", "-naccept", "1")
		address, recorded := relay(t, "127.0.0.1:"+port)
		keyFile := filepath.Join(dir, cipher)
		client := start(t, "s_client", "-connect", address, "-keylogfile", keyFile, "-tls1_2", "-cipher", cipher+":@SECLEVEL=0", "-nocommands")
		_, _ = io.WriteString(client.in, "stressed\n")
		waitFor(t, client.out, "desserts")
		client.end()
		plain, err := decryptWith(t, keyFile, recorded())
		if err != nil || string(plain[0]) != "stressed\n" || string(plain[1]) != "desserts\n" {
			t.Errorf("%s: %v, %q", cipher, err, plain)
		}
	}
}

// serve starts an openssl server and returns its port.
func serve(t *testing.T, arguments ...string) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(free.Addr().(*net.TCPAddr).Port)
	_ = free.Close()
	server := start(t, append([]string{"s_server", "-accept", "127.0.0.1:" + port}, arguments...)...)
	go func() { _, _ = io.Copy(io.Discard, server.out) }()
	listening(t, port)
	return port
}

// listening waits until a server listens on a port, without connecting to it.
func listening(t *testing.T, port string) {
	t.Helper()
	number, _ := strconv.Atoi(port)
	want := []byte(strings.ToUpper(":" + strconv.FormatInt(int64(number)|1<<16, 16)[1:] + " 00000000:0000 0A"))
	for range 500 {
		table, err := os.ReadFile("/proc/net/tcp")
		if err != nil {
			t.Skip("no /proc/net/tcp")
		}
		if bytes.Contains(table, want) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the server does not listen")
}

// TestEarlyData sends data before the handshake. The server accepts it, or
// rejects it because it no longer knows the ticket.
func TestEarlyData(t *testing.T) {
	openssl(t)
	dir := t.TempDir()
	_, file := certificate(t, dir)
	early := filepath.Join(dir, "early")
	if err := os.WriteFile(early, []byte("early words\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	session := filepath.Join(dir, "session")
	server := func() string { return serve(t, "-cert", file, "-early_data", "-tls1_3") }
	port := server()
	client := start(t, "s_client", "-connect", "127.0.0.1:"+port, "-sess_out", session, "-tls1_3")
	for range 500 { // the ticket arrives after the handshake
		if s, err := os.Stat(session); err == nil && s.Size() > 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond)
	client.end()
	for _, accepted := range []bool{true, false} {
		want := "early words\nlate words\n"
		if !accepted {
			port, want = server(), "late words\n"
		}
		address, recorded := relay(t, "127.0.0.1:"+port)
		keyFile := filepath.Join(dir, "keys"+strconv.FormatBool(accepted))
		client := start(t, "s_client", "-connect", address, "-keylogfile", keyFile, "-sess_in", session, "-early_data", early, "-tls1_3")
		text := "Early data was accepted"
		if !accepted {
			text = "Early data was rejected"
		}
		_, _ = io.WriteString(client.in, "late words\n")
		waitFor(t, client.out, text)
		time.Sleep(100 * time.Millisecond)
		client.end()
		plain, err := decryptWith(t, keyFile, recorded())
		if err != nil || string(plain[0]) != want {
			t.Errorf("accepted %v: %v, %q", accepted, err, plain[0])
		}
	}
}
